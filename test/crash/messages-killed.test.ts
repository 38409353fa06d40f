import { setTimeout as sleep } from 'node:timers/promises';
import { asc, desc, eq, like } from 'drizzle-orm';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { input, session as sessionTable, turn, turnRun } from '../../activities/store/schema.ts';
import { ChainCache, loadChain } from '../../activities/store/transcript.ts';
import { ANSWER_LIMIT_MS, clientEngine } from '../../client/engine.ts';
import { EngineAway } from '../../client/faults.ts';
import {
  callTools,
  type ChatRequest,
  type Reply,
  say,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../testing/index.ts';
import { forward, turnWorkflowId } from '../../workflows/messages.ts';
import { note } from '../support/numbers.ts';
import { until } from '../support/until.ts';
import { CrashRun } from './crash-run.ts';

const SESSIONS = 6;
const MESSAGES = 50;
const KILLS = 3;
const LAST = `message ${MESSAGES - 1}`;
/** The rest of the 500 events comes of itself. */
const SIGNALS = 450;

let provider: ScriptedProvider;
beforeAll(async () => {
  provider = await startScriptedProvider({ rules: play, expectKey: true });
});
afterAll(() => provider.close());

/** Works on, and ends now and then, and when it has heard all; the same request always gets the same answer. */
function play({ messages }: ChatRequest): Reply {
  if (messages.some(({ content }) => content === LAST)) return say('That was all.');
  const text = JSON.stringify(messages);
  let mixed = 7;
  for (let at = 0; at < text.length; at += 1) mixed = (mixed * 31 + text.charCodeAt(at)) % 1_000_003;
  // A long turn is one that gets to the length at which a fresh run takes over.
  const isLong = String(messages[1]?.content).includes('long');
  if (isLong ? messages.length > 60 && mixed % 10 === 0 : mixed % 3 === 0) return say(`So far: ${mixed}.`);
  return callTools([{ name: 'list_files', arguments: { depth: 1 + (mixed % 4) } }], {
    text: `Step ${mixed}.`,
  });
}

/** A repeatable source of chance (mulberry32). */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const repeated = async <T>(what: () => Promise<T>): Promise<T> =>
  await until('the engine takes it', () =>
    what().catch((error: unknown) => {
      if (error instanceof EngineAway) return null;
      throw error;
    }),
  );

async function begin(run: CrashRun, n: number): Promise<string> {
  const text = `${n % 2 === 0 ? 'long' : 'short'} ${n}`;
  const submitted = await repeated(() => run.runs.submit({ tenant: 'default', key: `${run.name}-${n}`, text }));
  if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
  return submitted.session;
}

/** So many messages at moments of chance, each by an id of its own; what got lost on the way is sent again. */
async function talk(run: CrashRun, of: string, random: () => number): Promise<void> {
  for (let n = 0; n < MESSAGES; n += 1) {
    await sleep(random() * 250);
    const mode = random() < 0.3 ? 'send_now' : 'steer';
    await repeated(() => run.runs.send('default', of, { mode, text: `message ${n}`, by: 'pat', id: `m${n}` }));
  }
}

/** A turn that is near the length at which a fresh run takes over. */
async function lengthen(run: CrashRun, turn: string): Promise<void> {
  const handle = run.house.temporal.workflow.getHandle(turnWorkflowId(turn));
  await until('the turn runs', () => handle.describe().catch(() => null));
  for (let sent = 0; sent < SIGNALS; sent += 50) {
    const signals = Array.from({ length: 50 }, () => handle.signal(forward, []));
    if ((await Promise.allSettled(signals)).some(({ status }) => status === 'rejected')) return;
  }
}

/** Lost tasks come back within 10 s each, and the sweep finds what has no driver within 20; a busy machine adds to it. */
const HEARD_WITHIN_MS = 90_000;

/** What stands in the way of messages that are not consumed. */
async function inTheWay(run: CrashRun, of: string): Promise<string> {
  const { db } = run.house.database;
  const rows = await db.select().from(input).where(eq(input.session, of)).orderBy(asc(input.seq));
  const open = rows.filter(({ status }) => status !== 'consumed');
  const lines = open.map((row) => `${row.id} ${row.kind} ${row.status} of ${row.turn}, message ${row.message}`);
  const [last] = await db.select().from(turn).where(eq(turn.session, of)).orderBy(desc(turn.n)).limit(1);
  const engine = clientEngine(run.house.temporal, run.house.taskQueue, ANSWER_LIMIT_MS);
  const { state, ...activity } = await engine.activityOf(last?.id ?? '');
  const turnIs = { turn: last?.id, end: last?.endReason, ...activity, phase: state?.phase, inbox: state?.inbox };
  return `${rows.length} inputs, these are left:\n${lines.join('\n')}\n${JSON.stringify(turnIs)}`;
}

async function check(run: CrashRun, of: string): Promise<{ turns: number; runs: number }> {
  const { db } = run.house.database;
  const rows = await until(
    `every message to ${of} is consumed`,
    async () => {
      const found = await db.select().from(input).where(eq(input.session, of)).orderBy(asc(input.seq));
      return found.length === MESSAGES + 1 && found.every(({ status }) => status === 'consumed') ? found : null;
    },
    HEARD_WITHIN_MS,
  ).catch(async (error: unknown) => {
    throw new Error(await inTheWay(run, of), { cause: error });
  });
  const [owner] = await db.select().from(sessionTable).where(eq(sessionTable.id, of));
  const chain = await loadChain(db, new ChainCache(), owner?.head ?? '');
  const heard = chain.flatMap(({ body }) => (body.kind === 'user' ? [body.input] : []));
  expect(heard, 'each once, in the order of its row').toEqual(rows.map(({ id }) => id));
  const kinds = (await readEvents(db, of, 0, 100_000)).map(({ event }) => event.kind);
  const count = (kind: string) => kinds.filter((each) => each === kind).length;
  expect(count('input.joined')).toBe(MESSAGES + 1);
  expect(count('turn.ended')).toBe(count('turn.opened'));
  return { turns: count('turn.opened'), runs: await db.$count(turnRun, like(turnRun.turn, `${of}/%`)) };
}

it(`${SESSIONS * MESSAGES} messages around the ends of turns, ${KILLS} workers killed: each is heard once, in order`, {
  timeout: 300_000,
}, async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);
  console.log(`messages: SEED=${seed}`);
  const random = dice(seed);
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  const unused = () => {
    throw new Error('this provider has rules of its own');
  };
  const run = await CrashRun.prepare({ provider: { provider, hold: unused }, servers });
  let sessions: string[] = [];
  try {
    let worker = run.worker();
    await worker.ready;
    sessions = await Promise.all(Array.from({ length: SESSIONS }, (_, n) => begin(run, n)));
    const talks = sessions.map((of, n) => talk(run, of, dice(seed + n)));
    await Promise.all(sessions.filter((_, n) => n % 2 === 0).map((of) => lengthen(run, `${of}/1`)));
    for (let n = 0; n < KILLS; n += 1) {
      await sleep(500 + random() * 1_500);
      await worker.kill();
      worker = run.worker();
      await worker.ready;
    }
    await Promise.all(talks);
    const sent = Date.now();
    const seen = await Promise.all(sessions.map((of) => check(run, of)));
    const turns = seen.reduce((sum, each) => sum + each.turns, 0);
    const runs = seen.reduce((sum, each) => sum + each.runs, 0);
    note('turns, their runs, and ms until the last one was heard', { turns, runs, ms: Date.now() - sent });
    expect(turns, 'turns ended meanwhile').toBeGreaterThan(SESSIONS);
    expect(runs, 'turns went on as new').toBeGreaterThan(turns);
  } finally {
    for (const of of sessions)
      await run.house.temporal.workflow
        .getHandle(`session/${of}`)
        .terminate('the test is over')
        .catch(() => {});
    await run.close();
  }
});
