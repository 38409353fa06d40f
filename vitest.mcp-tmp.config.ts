import { defineConfig } from 'vitest/config';
export default defineConfig({ test: { pool: 'forks', maxWorkers: 1, testTimeout: 60_000, hookTimeout: 60_000 } });
