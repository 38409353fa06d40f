import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { input, turn } from '../../activities/store/schema.ts';
import { ChainCache, loadChain } from '../../activities/store/transcript.ts';
import {
  callTools,
  type ChatRequest,
  hold,
  type Hold,
  paced,
  type Reply,
  say,
  type ScriptedProvider,
  startScriptedProvider,
  status,
} from '../../testing/index.ts';
import { turnState, turnWorkflowId } from '../../workflows/messages.ts';
import { until } from '../support/until.ts';
import { CrashRun } from './crash-run.ts';

const KINDS = ['steer', 'send_now', 'cancel'] as const;
type Kind = (typeof KINDS)[number];

interface Talk {
  readonly name: string;
  readonly kind: Kind;
  readonly phase: keyof typeof PHASES;
  session: string;
}

/** Half of what the whole test may take: a busy machine needs it. */
const LIMIT_MS = 120_000;

const holds = new Map<string, Hold>();
const rested = new Set<string>();

function held(name: string): Hold {
  const stop = holds.get(name) ?? hold();
  holds.set(name, stop);
  return stop;
}

/** In short: a kind, `cut` for half a reply, or how a result begins. What the kill leaves to chance has two lines. */
type Transcript = readonly string[];
const ON = ['user', 'assistant'] as const;

interface PhaseCase {
  readonly agent?: string;
  play(name: string): Reply;
  reached(run: CrashRun, talk: Talk): Promise<boolean>;
  readonly outcomes: Readonly<Record<Kind, readonly Transcript[]>>;
}

const PHASES = {
  sampling: {
    play: (name: string) => paced(say('One two three four.'), { hold: held(name), holdAt: 3 }),
    reached: (_: CrashRun, { name }: Talk) => held(name).reached.then(() => true),
    outcomes: {
      steer: [['user', 'assistant', ...ON]],
      // The attempt is lost with its worker, unless the next one was faster than the message.
      send_now: [
        ['user', ...ON],
        ['user', 'cut', ...ON],
      ],
      cancel: [
        ['user', 'interruption'],
        ['user', 'cut', 'interruption'],
      ],
    },
  },
  gate: {
    agent: 'asks',
    play: () =>
      callTools([
        { name: 'write_file', arguments: { path: 'one.txt', content: 'one' } },
        { name: 'list_files', arguments: {} },
      ]),
    reached: waits,
    outcomes: {
      steer: [['user', 'assistant', 'Wrote', '', ...ON]],
      send_now: [['user', 'assistant', 'A person answered with', 'Not started: a person', ...ON]],
      cancel: [['user', 'assistant', 'Not started: the turn', 'Not started: the turn', 'interruption']],
    },
  },
  tools: {
    play: () => callTools([{ name: 'shell', arguments: { command: ONCE } }]),
    reached: (run: CrashRun, { name }: Talk) =>
      Promise.resolve(existsSync(join(run.folder, 'workspaces', name, 'ready'))),
    outcomes: {
      steer: [['user', 'assistant', 'Interrupted while', ...ON]],
      send_now: [['user', 'assistant', 'Interrupted while', ...ON]],
      cancel: [['user', 'assistant', 'Interrupted while', 'interruption']],
    },
  },
  waiting: {
    agent: 'asks',
    play: () => callTools([{ name: 'wait_for', arguments: { event: 'a build' } }]),
    reached: waits,
    outcomes: {
      steer: [['user', 'assistant', 'The wait was interrupted', ...ON]],
      send_now: [['user', 'assistant', 'The wait was interrupted', ...ON]],
      cancel: [['user', 'assistant', 'Stopped while it waited', 'interruption']],
    },
  },
  resting: {
    play(name: string): Reply {
      if (rested.has(name)) return say('Nothing was heard.');
      rested.add(name);
      return status(429, { error: { message: 'slow down' } }, { 'retry-after': '100' });
    },
    async reached(run: CrashRun, { session }: Talk) {
      const handle = run.house.temporal.workflow.getHandle(turnWorkflowId(`${session}/1`));
      const state = await handle.query(turnState).catch(() => null);
      return state?.phase.kind === 'resting';
    },
    outcomes: {
      // Left alone it would rest for longer than the test: a message that can't wait ends it.
      steer: [['user', 'user', ...ON]],
      send_now: [['user', ...ON]],
      cancel: [['user', 'interruption']],
    },
  },
} satisfies Record<string, PhaseCase>;

/** Once its result is known the model may be asked before the message comes; then it asks for the same again. */
const ONCE = '[ -e ready ] && exit; echo $$ > ready; while :; do sleep 0.05; done';

function withoutRepeats(short: readonly string[]): readonly string[] {
  const isRepeat = (n: number) => short[n] === 'assistant' && short[n + 1] === '(no output)';
  return short.filter((_, n) => !isRepeat(n) && !(n > 0 && isRepeat(n - 1)));
}

async function openOf(run: CrashRun, { session }: Talk): Promise<string | undefined> {
  return (await run.runs.approvals('default')).find((each) => each.session === session)?.id;
}

async function waits(run: CrashRun, talk: Talk): Promise<boolean> {
  return (await openOf(run, talk)) !== undefined;
}

function play(request: ChatRequest): Reply {
  const [phase, kind] = String(request.messages[1]?.content).split(' ') as [keyof typeof PHASES, Kind];
  const isHeard = request.messages.some(({ content }) => content === 'message');
  return isHeard ? say('Heard.') : PHASES[phase].play(`${phase}-${kind}`);
}

let provider: ScriptedProvider;
beforeAll(async () => {
  provider = await startScriptedProvider({ rules: play, expectKey: true });
});
afterAll(() => provider.close());

async function begin(run: CrashRun, phase: Talk['phase'], kind: Kind): Promise<Talk> {
  const name = `${phase}-${kind}`;
  mkdirSync(join(run.folder, 'workspaces', name), { recursive: true });
  const { agent } = PHASES[phase] as PhaseCase;
  const ticket = { tenant: 'default', key: name, text: `${phase} ${kind}`, workspace: name, agent };
  const submitted = await run.runs.submit(ticket);
  if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
  return { name, kind, phase, session: submitted.session };
}

async function interrupt(run: CrashRun, { kind, session, name }: Talk): Promise<void> {
  if (kind !== 'cancel') await run.runs.send('default', session, { mode: kind, text: 'message', by: 'pat' });
  else {
    const [job] = (await run.runs.list('default', { limit: 200 })).jobs.filter((each) => each.session === session);
    expect(await run.runs.cancel('default', job?.id ?? name, { by: 'pat' })).toBe('took_request');
  }
}

/** What a steer waits for, now that a worker lives again. */
async function release(run: CrashRun, talk: Talk): Promise<void> {
  if (talk.kind !== 'steer') return;
  const isForwarded = async () => {
    const rows = await run.house.database.db.select().from(input).where(eq(input.session, talk.session));
    return rows.every((row) => row.status !== 'queued');
  };
  if (talk.phase === 'gate') {
    await until('the steer is with the turn', isForwarded);
    const id = await openOf(run, talk);
    await run.runs.answer('default', id ?? '', { answer: 'approved', by: 'pat' });
  }
  if (talk.phase === 'sampling') {
    const handle = run.house.temporal.workflow.getHandle(turnWorkflowId(`${talk.session}/1`));
    await until('the turn has the steer', async () => (await handle.query(turnState)).inbox.length > 1);
    held(talk.name).release();
  }
  if (talk.phase === 'resting') {
    const handle = run.house.temporal.workflow.getHandle(turnWorkflowId(`${talk.session}/1`));
    const { phase } = await until('the turn has the steer', async () => {
      const state = await handle.query(turnState);
      return state.inbox.length > 0 ? state : null;
    });
    expect(phase.kind, 'a steer does not end a rest').toBe('resting');
    await run.runs.send('default', talk.session, { mode: 'send_now', text: 'now', by: 'pat' });
  }
}

async function check(run: CrashRun, { name, kind, phase, session }: Talk): Promise<void> {
  const { db } = run.house.database;
  const end = await until(
    `the end of ${name}`,
    async () => (await db.select().from(turn).where(eq(turn.session, session))).find(({ endedAt }) => endedAt !== null),
    LIMIT_MS,
  ).catch(async (error: unknown) => {
    const events = await readEvents(db, session, 0, 10_000);
    throw new Error(`${name} has no end; so far: ${events.map(({ event }) => event.kind).join(' ')}`, { cause: error });
  });
  const expected = kind === 'cancel' ? { endDetail: 'user_cancel', endBy: 'pat' } : { endDetail: 'final_answer' };
  expect(end, name).toMatchObject({ n: 1, ...expected });
  const chain = await loadChain(db, new ChainCache(), end.head);
  const short = withoutRepeats(
    chain.map(({ body }) => {
      if (body.kind === 'assistant') return body.cut ? 'cut' : 'assistant';
      return body.kind === 'tool_result' ? body.text : body.kind;
    }),
  );
  const allowed: readonly Transcript[] = PHASES[phase].outcomes[kind];
  const fits = (line: Transcript) =>
    line.length === short.length && line.every((word, n) => short[n]?.includes(word) === true);
  expect(allowed.some(fits), `${name}: ${JSON.stringify(short)}`).toBe(true);
  const rows = await db.select().from(input).where(eq(input.session, session)).orderBy(asc(input.seq));
  expect(new Set(rows.map((row) => row.status)), name).toEqual(new Set(['consumed']));
  const kinds = (await readEvents(db, session, 0, 10_000)).map(({ event }) => event.kind);
  expect(
    kinds.filter((each) => each === 'turn.ended'),
    name,
  ).toHaveLength(1);
  expect(kinds.filter((each) => each === 'input.joined').length, name).toBe(
    short.filter((each) => each === 'user').length,
  );
}

it('a worker killed, then each kind of interruption in each phase: what a live one would have done, and each once', {
  timeout: 240_000,
}, async () => {
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  const unused = () => {
    throw new Error('this provider has rules of its own');
  };
  const run = await CrashRun.prepare({ provider: { provider, hold: unused }, servers });
  const talks: Talk[] = [];
  try {
    const first = run.worker();
    await first.ready;
    for (const phase of Object.keys(PHASES) as Talk['phase'][])
      for (const kind of KINDS) talks.push(await begin(run, phase, kind));
    await Promise.all(
      talks.map((talk) => until(`${talk.name} is there`, () => PHASES[talk.phase].reached(run, talk), LIMIT_MS)),
    );
    await first.kill();
    for (const talk of talks) await interrupt(run, talk);
    run.worker();
    await Promise.all(talks.map((talk) => release(run, talk)));
    await Promise.all(talks.map((talk) => check(run, talk)));
  } finally {
    for (const { session } of talks)
      await run.house.temporal.workflow
        .getHandle(`session/${session}`)
        .terminate('the test is over')
        .catch(() => {});
    await run.close();
  }
});
