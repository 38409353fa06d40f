import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { type Database, openDatabase } from '../../activities/store/database.ts';
import { migrateDatabase } from '../../activities/store/migrate.ts';

export interface TestDatabase extends Database {
  readonly url: string;
}

/** A migrated database of this test file's own; it is dropped with the server. */
export async function testDatabase(): Promise<TestDatabase> {
  const name = `t_${randomBytes(6).toString('hex')}`;
  const server = inject('databaseUrl');
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  const url = server.replace(/\/[^/?]*(\?|$)/, `/${name}$1`);
  await migrateDatabase(url);
  return { ...openDatabase(url), url };
}
