import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { migrateDatabase } from '../../../activities/store/migrate.ts';

async function emptyDatabase(): Promise<string> {
  const name = `m_${randomBytes(6).toString('hex')}`;
  await query(inject('databaseUrl'), `create database ${name}`);
  return inject('databaseUrl').replace(/\/[^/?]*(\?|$)/, `/${name}$1`);
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

const shape = (url: string) =>
  query(
    url,
    `select table_name, column_name, data_type from information_schema.columns where table_schema = 'pawl' order by 1, 2`,
  );
const applied = (url: string) => query(url, 'select hash from pawl.__drizzle_migrations');

test('migrating twice changes nothing and keeps what is there', async () => {
  const url = await emptyDatabase();
  await migrateDatabase(url);
  await query(url, `insert into pawl.tenant (id, name) values ('other', 'other')`);
  const before = [await shape(url), await applied(url)];
  await migrateDatabase(url);
  expect([await shape(url), await applied(url)]).toEqual(before);
  expect(await query(url, 'select id from pawl.tenant order by id')).toEqual([{ id: 'default' }, { id: 'other' }]);
});

// N workers of a deployment start at the same moment.
test('eight processes that migrate at once end with one schema, each migration once', async () => {
  const url = await emptyDatabase();
  await Promise.all(Array.from({ length: 8 }, () => migrateDatabase(url)));
  const reference = await emptyDatabase();
  await migrateDatabase(reference);
  expect([await shape(url), await applied(url)]).toEqual([await shape(reference), await applied(reference)]);
  expect(await query(url, 'select id from pawl.tenant')).toEqual([{ id: 'default' }]);
});
