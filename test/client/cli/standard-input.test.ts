import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { input } from '../../../activities/store/schema.ts';
import { sessionWorkflowId } from '../../../workflows/messages.ts';
import { seedTurn } from '../../activities/store/seed.ts';
import { pawl } from '../../support/command-line.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-stdin-'));
let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What a session has after the command, and what the command said. */
async function said(verb: string, words: readonly string[], stdin?: string) {
  const { session, input: first } = await seedTurn(database.db);
  const env = { TEMPORAL_ADDRESS: inject('temporalAddress'), DATABASE_URL: database.url };
  const done = await pawl([verb, session, ...words], {
    folder,
    home: join(folder, '.pawl'),
    env,
    ...(stdin === undefined ? {} : { stdin }),
  });
  const rows = await database.db.select().from(input).where(eq(input.session, session)).orderBy(asc(input.seq));
  const added = rows.filter(({ id }) => id !== first);
  if (added.length > 0) await forget(session);
  return { ...done, ids: added.map(({ id }) => id), added: added.map(({ kind, body }) => [kind, body]) };
}

/** No worker will ever take it, and the server serves other tests too. */
async function forget(session: string): Promise<void> {
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  await new Client({ connection }).workflow.getHandle(sessionWorkflowId(session)).terminate('the test is over');
  await connection.close();
}

// Trap: a pipe whose writer is slower than the command is not at its end.
it.concurrent.each([
  ['steer', 'steer', [], 'mind the old\nclients\n'],
  ['send-now', 'send_now', ['-'], 'not that\n'],
] as const)(
  '`pawl %s` takes what comes through a pipe, however slowly',
  { timeout: 60_000 },
  async (verb, kind, words, text) => {
    const done = await said(verb, words, text);
    expect(done).toMatchObject({ code: 0, out: `${done.ids[0]}\n`, err: '', added: [[kind, text.trimEnd()]] });
  },
);

it.concurrent('nothing to say: one sentence, exit code 2, and nothing is stored', { timeout: 60_000 }, async () => {
  const err = 'The input has no text: give it as words, or on standard input.\n';
  expect(await said('send-now', ['-'])).toEqual({ code: 2, out: '', err, ids: [], added: [] });
});
