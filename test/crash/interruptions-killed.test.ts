import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { cancel, input, turn } from '../../activities/store/schema.ts';
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
import { only } from '../support/engine-facts.ts';
import { billed, isSummary, step } from '../support/long-talk.ts';
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

/**
 * In short: a kind, `cut` for half a reply, or how a result begins; what stands before it is of no interest behind a
 * summary. What the kill leaves to chance has two lines.
 */
type Transcript = readonly string[];
const ON = ['user', 'assistant'] as const;

interface PhaseCase {
  readonly agent?: string;
  play(name: string, request: ChatRequest): Reply;
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
    reached: (run: CrashRun, talk: Talk) => Promise.resolve(existsSync(fileIn(run, talk, 'ready'))),
    outcomes: {
      steer: [['user', 'assistant', 'Interrupted while', ...ON]],
      send_now: [['user', 'assistant', 'Interrupted while', ...ON]],
      cancel: [['user', 'assistant', 'Interrupted while', 'interruption']],
    },
  },
  reading: {
    agent: 'slow',
    play: () => callTools([{ name: 'slow_read', arguments: {} }]),
    reached: (run: CrashRun, talk: Talk) => Promise.resolve(existsSync(fileIn(run, talk, 'reading'))),
    outcomes: {
      // Nothing is lost with a reader: it reads again.
      steer: [['user', 'assistant', 'reading is over', ...ON]],
      send_now: [['user', 'assistant', 'Stopped before', ...ON]],
      cancel: [
        ['user', 'assistant', 'Not started: the turn', 'interruption'],
        ['user', 'assistant', 'Stopped before', 'interruption'],
      ],
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
    reached: async (run: CrashRun, talk: Talk) => (await stateOf(run, talk))?.phase.kind === 'resting',
    outcomes: {
      // Left alone it would rest for longer than the test: a message that can't wait ends it.
      steer: [['user', 'user', ...ON]],
      send_now: [['user', ...ON]],
      cancel: [['user', 'interruption']],
    },
  },
  compacting: {
    agent: 'small',
    play: (name: string, request: ChatRequest) =>
      isSummary(request) ? paced(say('So far.'), { hold: held(name) }) : step(request.messages.length, 24_000),
    reached: (_: CrashRun, { name }: Talk) => held(name).reached.then(() => true),
    outcomes: {
      steer: [['compaction', ...ON]],
      send_now: [['compaction', ...ON]],
      cancel: [['assistant', '', 'interruption']],
    },
  },
  ending: {
    play: () => say('Done.'),
    reached: (run: CrashRun, talk: Talk) => Promise.resolve(existsSync(fileIn(run, talk, 'asking'))),
    outcomes: {
      steer: [['user', 'assistant', ...ON]],
      send_now: [['user', 'assistant', ...ON]],
      cancel: [['user', 'assistant', 'interruption']],
    },
  },
  /** Each of these was cancelled, and cleans up when its worker dies. */
  cleanup: {
    agent: 'slow',
    play: () => callTools([{ name: 'deaf_act', arguments: {} }]),
    reached: (run: CrashRun, talk: Talk) => Promise.resolve(existsSync(fileIn(run, talk, 'acting'))),
    outcomes: {
      steer: [['user', 'assistant', 'Interrupted while', 'interruption']],
      send_now: [['user', 'assistant', 'Interrupted while', 'interruption']],
      cancel: [['user', 'assistant', 'Interrupted while', 'interruption']],
    },
  },
} satisfies Record<string, PhaseCase>;

function fileIn(run: CrashRun, { name }: Pick<Talk, 'name'>, file: string): string {
  return join(run.folder, 'workspaces', name, file);
}

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

/** Null while no worker answers for it. */
async function stateOf(run: CrashRun, { session }: Talk) {
  const handle = run.house.temporal.workflow.getHandle(turnWorkflowId(`${session}/1`));
  return await handle.query(turnState).catch(() => null);
}

const NAMES = new RegExp(`\\b(${Object.keys(PHASES).join('|')}) (${KINDS.join('|')})\\b`);

function play(request: ChatRequest): Reply {
  const [, phase, kind] = NAMES.exec(JSON.stringify(request.messages)) ?? [];
  const isHeard = request.messages.some(({ content }) => String(content).startsWith('message of'));
  const { play: reply }: PhaseCase = PHASES[phase as Talk['phase']];
  return billed(isHeard ? say('Heard.') : reply(`${phase}-${kind}`, request), request);
}

let provider: ScriptedProvider;
beforeAll(async () => {
  provider = await startScriptedProvider({ rules: play, expectKey: true });
});
afterAll(() => provider.close());

async function begin(run: CrashRun, phase: Talk['phase'], kind: Kind): Promise<Talk> {
  const name = `${phase}-${kind}`;
  mkdirSync(fileIn(run, { name }, ''), { recursive: true });
  const { agent } = PHASES[phase] as PhaseCase;
  const ticket = { tenant: 'default', key: name, text: `${phase} ${kind}`, workspace: name, agent };
  const submitted = await run.runs.submit(ticket);
  if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
  return { name, kind, phase, session: submitted.session };
}

async function cancelBy(run: CrashRun, { session, name }: Talk, by: string): Promise<void> {
  const [job] = (await run.runs.list('default', { limit: 200 })).jobs.filter((each) => each.session === session);
  expect(await run.runs.cancel('default', job?.id ?? name, { by })).toBe('took_request');
}

async function interrupt(run: CrashRun, talk: Talk): Promise<void> {
  const { kind, session, phase } = talk;
  if (kind === 'cancel') return await cancelBy(run, talk, phase === 'cleanup' ? 'sam' : 'pat');
  await run.runs.send('default', session, { mode: kind, text: `message of ${phase} ${kind}`, by: 'pat' });
}

/** Now that a worker lives again: lets the step go on that the message does not end. */
async function release(run: CrashRun, talk: Talk): Promise<void> {
  const { kind, phase, name, session } = talk;
  if (kind === 'cancel' || (kind === 'send_now' && phase !== 'compacting')) return;
  const heard = async () => {
    const state = await until(
      'the turn has the message',
      async () => {
        const now = await stateOf(run, talk);
        return now && now.inbox.length > (phase === 'sampling' ? 1 : 0) ? now : null;
      },
      LIMIT_MS,
    );
    return state.phase.kind;
  };
  switch (phase) {
    case 'gate': {
      await heard();
      const id = await openOf(run, talk);
      await run.runs.answer('default', id ?? '', { answer: 'approved', by: 'pat' });
      break;
    }
    case 'sampling':
    case 'compacting':
      await heard();
      held(name).release();
      break;
    case 'reading':
    case 'ending':
      await heard();
      writeFileSync(fileIn(run, talk, 'go'), '');
      break;
    case 'resting':
      expect(await heard(), 'a steer does not end a rest').toBe('resting');
      await run.runs.send('default', session, { mode: 'send_now', text: 'now', by: 'pat' });
      break;
    case 'cleanup':
    case 'tools':
    case 'waiting':
      break;
  }
}

async function endOf(run: CrashRun, { name, session }: Talk) {
  const { db } = run.house.database;
  return await until(
    `the end of ${name}`,
    async () => (await db.select().from(turn).where(eq(turn.session, session))).find(({ endedAt }) => endedAt !== null),
    LIMIT_MS,
  ).catch(async (error: unknown) => {
    const events = await readEvents(db, session, 0, 10_000);
    throw new Error(`${name} has no end; so far: ${events.map(({ event }) => event.kind).join(' ')}`, { cause: error });
  });
}

async function check(run: CrashRun, talk: Talk): Promise<void> {
  const { name, kind, phase, session } = talk;
  const { db } = run.house.database;
  const end = await endOf(run, talk);
  const isCancelled = kind === 'cancel' || phase === 'cleanup';
  const expected = isCancelled ? { endDetail: 'user_cancel', endBy: 'pat' } : { endDetail: 'final_answer' };
  expect(end, name).toMatchObject({ n: 1, ...expected });
  const chain = await loadChain(db, new ChainCache(), end.head);
  const short = withoutRepeats(
    chain.map(({ body }) => {
      if (body.kind === 'assistant') return body.cut ? 'cut' : 'assistant';
      return body.kind === 'tool_result' ? body.text : body.kind;
    }),
  );
  const allowed: readonly Transcript[] = PHASES[phase].outcomes[kind];
  const fits = (line: Transcript) => {
    const seen = phase === 'compacting' ? short.slice(-line.length) : short;
    return line.length === seen.length && line.every((word, n) => seen[n]?.includes(word) === true);
  };
  expect(allowed.some(fits), `${name}: ${JSON.stringify(short)}`).toBe(true);
  const rows = await db.select().from(input).where(eq(input.session, session)).orderBy(asc(input.seq));
  const dropped = phase === 'cleanup' && kind !== 'cancel' ? ['dropped_by_cancel'] : [];
  const statuses = rows.map((row) => row.status);
  expect(statuses, name).toEqual([...rows.slice(dropped.length).map(() => 'consumed'), ...dropped]);
  const events = await readEvents(db, session, 0, 10_000);
  expect(only(events, 'turn.ended'), name).toHaveLength(1);
  expect(only(events, 'input.joined'), name).toHaveLength(rows.length - dropped.length);
  expect(only(events, 'input.dropped'), name).toHaveLength(dropped.length);
  if (phase === 'ending' && kind !== 'cancel')
    expect(only(events, 'stop_gate.answered').map(({ answer }) => answer)).toEqual([
      kind === 'steer' ? 'pass' : 'cut',
      'pass',
    ]);
  const cancels = await db.select().from(cancel).where(eq(cancel.turn, end.id)).orderBy(asc(cancel.seq));
  const answers = isCancelled
    ? [['pat', 'took'], ...(phase === 'cleanup' && kind === 'cancel' ? [['sam', 'second']] : [])]
    : [];
  expect(
    cancels.map(({ by, answer }) => [by, answer]),
    name,
  ).toEqual(answers);
}

/** Those that are to be in their cleanup when the worker dies. */
async function cleanUp(run: CrashRun, talk: Talk): Promise<void> {
  await cancelBy(run, talk, 'pat');
  await until('it cleans up', async () => (await stateOf(run, talk))?.asked != null);
}

it('a worker killed, then each kind of interruption in each phase: what a live one would have done, and each once', {
  timeout: 240_000,
}, async () => {
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  const unused = () => {
    throw new Error('this provider has rules of its own');
  };
  const run = await CrashRun.prepare({ provider: { provider, hold: unused }, servers, hooks: 'waiting' });
  const talks: Talk[] = [];
  try {
    const first = run.worker();
    await first.ready;
    for (const phase of Object.keys(PHASES) as Talk['phase'][])
      for (const kind of KINDS) talks.push(await begin(run, phase, kind));
    await Promise.all(
      talks.map((talk) => until(`${talk.name} is there`, () => PHASES[talk.phase].reached(run, talk), LIMIT_MS)),
    );
    await Promise.all(talks.filter(({ phase }) => phase === 'cleanup').map((talk) => cleanUp(run, talk)));
    await first.kill();
    const next = run.worker();
    await Promise.all(talks.map((talk) => interrupt(run, talk)));
    await next.ready;
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
