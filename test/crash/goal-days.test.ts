import { and, eq, isNull } from 'drizzle-orm';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { turn } from '../../activities/store/schema.ts';
import {
  callTools,
  type ChatRequest,
  hold,
  paced,
  type Reply,
  say,
  type ScriptedProvider,
  startScriptedProvider,
  status,
} from '../../testing/index.ts';
import { userTexts } from '../support/conversations.ts';
import { goalIs, movesOf, roundsOf, wakesOf } from '../support/goals.ts';
import { note } from '../support/numbers.ts';
import { until } from '../support/until.ts';
import { type Child, CrashRun } from './crash-run.ts';

/** What a day lasts here: as short as a Schedule can be, and as long as you like. */
const DAY_S = Number(process.env.GOAL_DAY_SECONDS ?? 1);
const DAY_MS = DAY_S * 1_000;
const LIMIT_MS = 90_000 + 4 * DAY_MS;
const TENANT = 'default';
const IMPATIENT = { transportAttempts: 2, transportDelaysMs: [100], transientDelaysMs: [] };

let provider: ScriptedProvider;
let isAway = false;
let held: ReturnType<typeof hold> | null = null;
let replies = 0;

/** Works for a day, then waits for the next one. */
function play(request: ChatRequest): Reply {
  if (isAway) return status(503, { error: { message: 'away' } });
  if (!userTexts(request).some((text) => text.startsWith('This is round'))) return say('Hello.');
  if (request.messages.at(-1)?.role === 'tool') return say(`Day ${++replies}.`);
  const claim = { status: 'waiting', note: 'for the next day', event: 'day' };
  const waits = callTools([{ name: 'update_goal', arguments: claim }], { text: 'Nothing more to do today.' });
  const stop = held;
  held = null;
  return stop ? paced(waits, { hold: stop, holdAt: 2 }) : waits;
}

let run: CrashRun;
let worker: Child;
beforeAll(async () => {
  provider = await startScriptedProvider({ rules: play, expectKey: true });
  const unused = () => {
    throw new Error('this provider has rules of its own');
  };
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  run = await CrashRun.prepare({ provider: { provider, hold: unused }, servers, patience: IMPATIENT });
  worker = run.worker();
  await worker.ready;
});
afterAll(async () => {
  await run.close();
  await provider.close();
});

const at = () => ({
  house: run.house,
  events: (session: string) => readEvents(run.house.database.db, session, 0, 100_000),
});

interface DailyGoal {
  readonly id: string;
  readonly session: string;
}

async function begin(): Promise<DailyGoal> {
  const { session } = await run.submit();
  const { db } = run.house.database;
  const ended = eq(turn.id, `${session}/1`);
  await until('the first turn has ended', async () => (await db.select().from(turn).where(ended))[0]?.endedAt);
  const goal = {
    objective: 'Something each day.',
    session,
    schedule: { everySeconds: DAY_S },
    budget: { turns: 1_000 },
  };
  const created = await run.runs.createGoal({ tenant: TENANT, key: run.name, by: 'a', ...goal });
  if (created.kind !== 'accepted') throw new Error(created.kind);
  return { id: created.goal, session };
}

/** Waits until it has moved so `more` times more than now. */
async function moves(goal: DailyGoal, name: string, more: number): Promise<void> {
  const count = async () => (await movesOf(at(), goal)).filter((move) => move.startsWith(name)).length;
  const before = await count();
  await until(`${name}, ${more} times more`, async () => (await count()) >= before + more, LIMIT_MS);
}

/** Kills the worker, and starts another one when two days have passed: the times between which nobody worked. */
async function twoDaysWithoutWorker(): Promise<{ readonly fromMs: number; readonly toMs: number }> {
  const fromMs = Date.now();
  await worker.kill();
  const backMs = Math.ceil(Date.now() / DAY_MS) * DAY_MS + 1.2 * DAY_MS;
  await until('two days have passed', () => Date.now() > backMs, LIMIT_MS);
  const toMs = Date.now();
  worker = run.worker();
  await worker.ready;
  return { fromMs, toMs };
}

interface Slot {
  readonly atMs: number;
  readonly id: string;
  readonly key: string;
  readonly outcome: string | null;
  readonly why: string | null;
  readonly settledMs: number;
}

async function slotsOf({ id }: DailyGoal): Promise<Slot[]> {
  const rows = await until('each firing has its outcome', async () => {
    const found = await wakesOf(at(), id);
    return found.every(({ outcome }) => outcome !== null) ? found : null;
  });
  return rows
    .map(({ id: wake, key, outcome, why, settledAt }) => {
      const atMs = Date.parse(key.replace('schedule/', ''));
      return { atMs, id: wake, key, outcome, why, settledMs: settledAt?.getTime() ?? 0 };
    })
    .toSorted((a, b) => a.atMs - b.atMs);
}

/** The firing that a superseded one was told to stand for it. */
function standingFor(slot: Slot, all: readonly Slot[]): Slot {
  if (slot.outcome !== 'superseded') return slot;
  const other = all.find(({ id, key }) => id === slot.why || key === slot.why);
  if (!other) throw new Error(`${slot.key} is superseded by ${slot.why}, which never came`);
  return standingFor(other, all);
}

/** What became of each time that it was made active. */
function livesOf(line: readonly string[]): readonly { readonly rounds: number; readonly isExcused: boolean }[] {
  const lives: { rounds: number; isExcused: boolean }[] = [];
  let isOpen = false;
  for (const each of line) {
    const life = lives.at(-1);
    // The round that a pause let run goes on where it is made active again.
    if (each === 'active') lives.push({ rounds: 0, isExcused: isOpen });
    else if (each === 'round' && life) life.rounds += 1;
    // Somebody may come between a wake and its round.
    else if ((each === 'paused' || each === 'cancelled') && life) life.isExcused = true;
    if (each === 'round') isOpen = true;
    if (each === 'ended') isOpen = false;
  }
  return lives;
}

it('ten days: a wake each day, two workers killed, the provider away, a pause: each day and each round exactly once', {
  timeout: 12 * LIMIT_MS,
}, async () => {
  const goal = await begin();
  await moves(goal, 'waiting(event)', 3);

  // In the middle of a round.
  const stop = hold();
  held = stop;
  await stop.reached;
  const first = await twoDaysWithoutWorker();
  stop.release();
  await moves(goal, 'waiting(event)', 2);

  // At rest.
  await goalIs(at(), goal.id, 'waiting(event)');
  const second = await twoDaysWithoutWorker();
  await moves(goal, 'waiting(event)', 1);

  isAway = true;
  await moves(goal, 'paused(infrastructure)', 2);
  isAway = false;
  await moves(goal, 'waiting(event)', 1);

  await run.runs.orderGoal(TENANT, goal.id, { kind: 'pause', by: 'a' });
  const asleep = async () => (await wakesOf(at(), goal.id)).filter(({ why }) => why === 'paused(user)').length;
  await until('two days asleep', async () => (await asleep()) >= 2, LIMIT_MS);
  await run.runs.orderGoal(TENANT, goal.id, { kind: 'resume', by: 'a' });
  await moves(goal, 'waiting(event)', 2);
  await run.runs.orderGoal(TENANT, goal.id, { kind: 'cancel', by: 'a' });
  const { rounds } = (await goalIs(at(), goal.id, 'cancelled')).state;

  const open = and(eq(turn.session, goal.session), isNull(turn.endedAt));
  await until('its last turn has ended', async () => (await run.house.database.db.$count(turn, open)) === 0);
  const slots = await slotsOf(goal);
  const told = (await at().events(goal.session)).map(({ event }) => event);
  const fired = slots.filter(({ outcome }) => outcome === 'fired').length;
  note('days of a goal', { dayMs: DAY_MS, days: slots.length, fired, rounds });
  if (DAY_S >= 10) console.log(slots.map(({ key, outcome, why }) => `${key} ${outcome} (${why})`).join('\n'));

  // Each day has one outcome, and no day is missing.
  expect(slots.map(({ atMs }) => atMs)).toEqual(slots.map((_, n) => (slots[0]?.atMs ?? 0) + n * DAY_MS));
  expect(slots.length).toBeGreaterThanOrEqual(10);
  const wakeEvents = told.flatMap((event) => (event.kind === 'goal.wake' ? [event.wake] : []));
  expect(new Set(wakeEvents).size).toBe(wakeEvents.length);

  // Nothing is lost: what stands for a day was decided after that day had come.
  for (const slot of slots) expect(standingFor(slot, slots).settledMs).toBeGreaterThanOrEqual(slot.atMs);

  // Days that were missed collapse: into one, or into one that was remembered before.
  for (const { fromMs, toMs } of [first, second]) {
    const missed = slots.filter(({ atMs }) => atMs > fromMs && atMs <= toMs).map(({ outcome }) => outcome);
    expect(missed.length).toBeGreaterThanOrEqual(2);
    expect(missed.filter((outcome) => outcome !== 'superseded').length).toBeLessThanOrEqual(1);
    if (DAY_S >= 10) expect(missed.map(String).toSorted((a, b) => a.localeCompare(b))).toEqual(['fired', 'superseded']);
  }

  // One round for each time that it was made active, one at a time, and none that was run twice.
  const line = told.flatMap((event): string[] => {
    switch (event.kind) {
      case 'goal.moved':
      case 'goal.ended':
        return event.reason === 'active' || event.signal === 'command' ? [event.reason] : [];
      case 'input.accepted':
        return event.source === 'directive' ? ['round'] : [];
      case 'turn.opened':
        return event.n > 1 ? ['opened'] : [];
      case 'turn.ended':
        return ['ended'];
      default:
        return [];
    }
  });
  const own = line.slice(line.indexOf('active'));
  const ran = own.filter((each) => each === 'round' || each === 'opened' || each === 'ended');
  expect(ran).toEqual(Array.from({ length: rounds }, () => ['round', 'opened', 'ended']).flat());
  const lives = livesOf(own);
  for (const life of lives) expect(life.rounds).toBe(life.rounds === 0 && life.isExcused ? 0 : 1);
  const numbers = (await roundsOf(at(), goal.id)).map(({ round, status: how }) => [round, how]);
  expect(numbers).toEqual(numbers.map((_, n) => [n + 1, 'consumed']));
  expect(numbers.length).toBe(rounds);
  // The first one, each wake that fired, and the resume.
  const causes = (await movesOf(at(), goal)).filter((move) => move.startsWith('active'));
  expect(causes.toSorted()).toEqual(
    ['active by created', 'active by command', ...Array<string>(fired).fill('active by wake')].toSorted(),
  );
  expect(causes.length).toBe(lives.length);
});
