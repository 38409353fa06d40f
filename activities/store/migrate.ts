import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import pg from 'pg';

const MIGRATIONS = fileURLToPath(new URL('./migrations', import.meta.url));
const MIGRATION_LOCK = 0x7061776c;

/** Brings the schema up to date. Safe to call from several processes at once: one migrates, the others wait. */
export async function migrateDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'pawl migrate' });
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await migrate(drizzle(client), { migrationsFolder: MIGRATIONS, migrationsSchema: 'pawl' });
    await client.query(`insert into pawl.tenant (id, name) values ('default', 'default') on conflict do nothing`);
  } finally {
    await client.end();
  }
}
