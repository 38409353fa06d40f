import { defineConfig } from 'vitest/config';
import { ClosingLine } from './test/support/closing-line.ts';

/** Needs no server, so `npx vitest --project pure` answers at once. */
const PURE = ['test/core/**/*.test.ts', 'test/house/**/*.test.ts'];
/** They measure speed and memory, so they run last and alone. */
const LONG = ['test/long/**/*.test.ts'];
/** One Temporal server and one PostgreSQL for all files of a project. */
const SERVERS = './test/support/global-setup.ts';

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 60_000,
    // The crash tests wait for time-outs most of their time, so many run side by side.
    maxConcurrency: 8,
    hookTimeout: 120_000,
    reporters: ['default', new ClosingLine()],
    projects: [
      { extends: true, test: { name: 'pure', include: PURE } },
      {
        extends: true,
        test: {
          name: 'servers',
          include: ['test/**/*.test.ts'],
          exclude: [...PURE, ...LONG],
          globalSetup: SERVERS,
        },
      },
      {
        extends: true,
        test: { name: 'long', include: LONG, globalSetup: SERVERS, maxWorkers: 1, sequence: { groupOrder: 1 } },
      },
    ],
  },
});
