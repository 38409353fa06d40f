import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: './activities/store/schema.ts',
  out: './activities/store/migrations',
  schemaFilter: ['pawl'],
});
