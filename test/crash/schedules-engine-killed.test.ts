import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { EngineAway } from '../../client/faults.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, type ChatRequest, say } from '../../testing/index.ts';
import type { EmbeddedServers } from '../../worker/embedded/contract.ts';
import { startEmbedded } from '../../worker/embedded/start.ts';
import { directives, goalIs, movesOf, roleOf, roundsOf, verdict, vote, wakesOf } from '../support/goals.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';
import { makeTempHome } from '../worker/embedded/temp-home.ts';

const TENANT = 'default';
const LIMIT_MS = 90_000;
const KILLS = 3;

function play(request: ChatRequest) {
  const role = roleOf(request);
  if (role === 'judge') return verdict('candidate_complete');
  if (role === 'sceptic') return vote('approve');
  if (!directives(request).some((text) => text.includes('WAIT.'))) return say('Done.');
  if (request.messages.at(-1)?.role === 'tool') return say(`Said ${request.messages.length}.`);
  return callTools([{ name: 'update_goal', arguments: { status: 'waiting', note: 'for more', event: 'more' } }]);
}

const temp = makeTempHome();
let engine: EmbeddedServers;
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  engine = await startEmbedded({ home: temp.home, onProgress: () => {} });
  at = await testHouse({ rules: play, temporalAddress: engine.temporalAddress });
  const { database, temporal, taskQueue, catalogue, listener } = at.house;
  runs = createRuns({ database, temporal, taskQueue, catalogue, listener, engineLimitMs: 30_000 });
  mkdirSync(join(at.workspaces, 'w'), { recursive: true });
});
afterAll(async () => {
  await at.close();
  await engine.stop();
  temp.remove();
});

async function create(key: string, objective: string, where: { session: string } | { workspace: string }) {
  const asked = { tenant: TENANT, key, objective, schedule: { everySeconds: 1 }, budget: { turns: 1_000 }, by: 'a' };
  const created = await runs.createGoal({ ...asked, ...where });
  if (created.kind !== 'accepted') throw new Error(created.kind);
  return created.goal;
}

interface Outage {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Right before a second is full, so that its firing falls due while nothing runs. */
async function killEngine(): Promise<Outage> {
  await until('a second is nearly full', () => Date.now() % 1_000 > 800 && Date.now() % 1_000 < 930);
  const fromMs = Date.now();
  const { temporal: before = 0 } = engine.pids();
  process.kill(before, 'SIGKILL');
  await until('another engine is there', () => engine.pids().temporal !== before, LIMIT_MS);
  return { fromMs, toMs: Date.now() };
}

interface Slot {
  readonly atMs: number;
  readonly handledMs: number;
  readonly outcome: string | null;
  /** Another firing stood for it. */
  readonly isCovered: boolean;
}

const inOrder = (slots: readonly Slot[]) => slots.toSorted((a, b) => a.atMs - b.atMs);

async function wakeSlots(id: string): Promise<Slot[]> {
  const rows = await wakesOf(at, id);
  return inOrder(
    rows.map(({ key, outcome, why, createdAt }) => {
      const isCovered = outcome === 'superseded' && why?.startsWith('schedule/') === true;
      return { atMs: Date.parse(key.slice('schedule/'.length)), handledMs: createdAt.getTime(), outcome, isCovered };
    }),
  );
}

async function firings(id: string) {
  return (await runs.recurring(TENANT, id))?.firings ?? [];
}

async function firingSlots(id: string): Promise<Slot[]> {
  const isCovered = (outcome: string) => outcome === 'superseded';
  return inOrder(
    (await firings(id)).map(({ slot, outcome, at: handled }) => {
      return { atMs: Date.parse(slot), handledMs: Date.parse(handled), outcome, isCovered: isCovered(outcome) };
    }),
  );
}

const repeated = <T>(what: () => Promise<T>) =>
  until('the engine takes it', () =>
    what().catch((error: unknown) => {
      if (error instanceof EngineAway) return null;
      throw error;
    }),
  );

it('an engine that is killed misses no firing for good: each second has its one outcome, the missed ones collapse', {
  timeout: 3 * LIMIT_MS,
}, async () => {
  const first = await runs.submit({ tenant: TENANT, key: 'first', text: 'hello', workspace: 'w' });
  if (first.kind !== 'accepted') throw new Error(first.kind);
  await at.ended(first.session);
  const woken = await create('woken', 'WAIT.', { session: first.session });
  const template = await create('each second', 'Do it once.', { workspace: 'w' });
  const count = async (slots: (id: string) => Promise<Slot[]>, id: string, afterMs: number, outcome: string) =>
    (await slots(id)).filter((slot) => slot.atMs > afterMs && slot.outcome === outcome).length;
  const goesOn = (afterMs: number) =>
    until(
      'both have fired twice more',
      async () =>
        (await count(wakeSlots, woken, afterMs, 'fired')) >= 2 &&
        (await count(firingSlots, template, afterMs, 'started')) >= 2,
      LIMIT_MS,
    );
  await goesOn(0);
  const outages: Outage[] = [];
  for (let n = 0; n < KILLS; n += 1) outages.push(await killEngine());
  await goesOn(Date.now());
  for (const id of [woken, template]) await repeated(() => runs.orderGoal(TENANT, id, { kind: 'cancel', by: 'a' }));
  const { rounds } = (await goalIs(at, woken, 'cancelled')).state;

  for (const slots of [await wakeSlots(woken), await firingSlots(template)]) {
    // None twice, none missing.
    expect(slots.map(({ atMs }) => atMs)).toEqual(slots.map((_, n) => (slots[0]?.atMs ?? 0) + n * 1_000));
    const missed = outages.map(({ fromMs, toMs }) => slots.some(({ atMs }) => atMs > fromMs && atMs < toMs));
    expect(missed).toEqual(Array(KILLS).fill(true));
    // One that had fallen due when another was handled is covered by it; one that had not is not.
    const standing = slots.filter(({ isCovered }) => !isCovered);
    for (const [n, next] of standing.slice(1).entries()) expect(next.atMs).toBeGreaterThan(standing[n]?.handledMs ?? 0);
    for (const { atMs } of slots.filter(({ isCovered }) => isCovered))
      expect(standing.some(({ handledMs }) => handledMs >= atMs)).toBe(true);
  }
  // Each firing that began a round began one goal, which has come to its end once.
  const begun = (await firings(template)).flatMap(({ outcome, goal }) => (outcome === 'started' && goal ? [goal] : []));
  expect(new Set(begun).size).toBe(begun.length);
  for (const id of begun) await goalIs(at, id, 'complete');
  // Each wake that fired made it active once.
  const moves = await movesOf(at, { id: woken, session: first.session });
  const fired = (await wakesOf(at, woken)).filter(({ outcome }) => outcome === 'fired').length;
  expect(moves.filter((move) => move.startsWith('active')).toSorted()).toEqual(
    ['active by created', ...Array<string>(fired).fill('active by wake')].toSorted(),
  );
  const ran = (await roundsOf(at, woken)).map(({ round }) => round);
  expect(ran).toEqual(Array.from({ length: rounds }, (_, n) => n + 1));
  // The last one may have been cancelled before it had a round.
  expect([fired, fired + 1]).toContain(rounds);
});
