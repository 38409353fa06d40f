import { jsonb, text } from 'drizzle-orm/pg-core';
import type { OutputSchema, StoredAgent, StoredTool } from '../stored.ts';
import { created, pawl, when } from './columns.ts';

export const tenant = pawl.table('tenant', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  createdAt: created(),
});

export const token = pawl.table('token', {
  id: text('id').primaryKey(),
  tenant: text('tenant')
    .notNull()
    .references(() => tenant.id),
  hash: text('hash').notNull().unique(),
  scopes: text('scopes').array().notNull(),
  expiresAt: when('expires_at'),
  revokedAt: when('revoked_at'),
  createdAt: created(),
});

/** Immutable, by content hash: a session keeps the definition it was opened with. */
export const agent = pawl.table('agent', {
  hash: text('hash').primaryKey(),
  name: text('name').notNull(),
  definition: jsonb('definition').$type<StoredAgent>().notNull(),
  createdAt: created(),
});

/** What answers have to fit; immutable, by content hash. */
export const outputSchema = pawl.table('output_schema', {
  hash: text('hash').primaryKey(),
  schema: jsonb('schema').$type<OutputSchema>().notNull(),
  createdAt: created(),
});

export const toolList = pawl.table('tool_list', {
  hash: text('hash').primaryKey(),
  tools: jsonb('tools').$type<readonly StoredTool[]>().notNull(),
  createdAt: created(),
});

/** The mark that the shared workspace root of a task queue carries: a worker without it has not the same mount. */
export const sharedRoot = pawl.table('shared_root', {
  taskQueue: text('task_queue').primaryKey(),
  mark: text('mark').notNull(),
  createdAt: created(),
});
