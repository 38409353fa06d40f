import { sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Deps } from '../../../activities/deps.ts';
import type { Engine } from '../../../activities/engine/port.ts';
import { sweep } from '../../../activities/recovery/sweep.ts';
import { createRegistry } from '../../../activities/tools/registry.ts';
import { POLICY } from '../../../workflows/core/policy.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { seedTurn } from '../store/seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const MANY = POLICY.recovery.turnsAtOnce * 2 + 100;

/** Open turns like the one that is there, each of a session of its own. */
async function copyTurn(from: { readonly session: string; readonly turn: string }, times: number): Promise<void> {
  const clone = (table: string, where: string, keys: string) =>
    sql.raw(`insert into pawl.${table} select (jsonb_populate_record(null::pawl.${table}, to_jsonb(row) || ${keys})).*
      from pawl.${table} row, generate_series(1, ${times}) nth where row.${where}`);
  const session = `'session', 'copy_' || nth`;
  await at.db.execute(
    clone('session', `id = '${from.session}'`, `jsonb_build_object('id', 'copy_' || nth, 'stream', 'copy_' || nth)`),
  );
  await at.db.execute(
    clone(
      'input',
      `session = '${from.session}'`,
      `jsonb_build_object('id', 'in_' || nth, ${session}, 'turn', 'copy_' || nth || '/1')`,
    ),
  );
  await at.db.execute(
    clone(
      'turn',
      `id = '${from.turn}'`,
      `jsonb_build_object('id', 'copy_' || nth || '/1', ${session}, 'input', 'in_' || nth)`,
    ),
  );
}

// Trap: a look that takes the first few hundred that come up never sees those behind them.
test('every open turn is looked at once in a round, however many there are', async () => {
  const first = await seedTurn(at.db);
  await copyTurn(first, MANY - 1);
  const asked: string[] = [];
  const never = () => Promise.reject(new Error('nobody asked for this'));
  const engine: Engine = {
    isCurrentRun: never,
    cancelAuthor: never,
    requestCancel: never,
    answerWaits: never,
    look: never,
    fateOf: (id) => {
      asked.push(id);
      return Promise.resolve({ kind: 'running' });
    },
  };
  const deps = {
    database: at,
    engine,
    tools: createRegistry([]),
    reporter: { wake() {} },
    log: pino({ level: 'silent' }),
  };
  const places: (string | null)[] = [];
  let after: string | null = null;
  do {
    ({ after } = await sweep(deps as unknown as Deps, after));
    places.push(after);
  } while (after !== null);
  expect(places).toEqual([expect.any(String), expect.any(String), null]);
  expect(asked).toHaveLength(MANY);
  expect(new Set(asked).size).toBe(MANY);
});
