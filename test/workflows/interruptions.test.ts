import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { delta, input } from '../../activities/store/schema.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, type ChatRequest, hold, type Hold, paced, type Reply, say, status } from '../../testing/index.ts';
import { turnState } from '../../workflows/messages.ts';
import { cancelsOf, cancelTurn, only, turnHandle } from '../support/engine-facts.ts';
import { billed, isSummary, step } from '../support/long-talk.ts';
import { SLOW_TOOLS } from '../support/slow-tools.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

/** A busy machine takes its time. */
const LIMIT_MS = 90_000;

type Kind = 'steer' | 'send_now' | 'cancel';

/** What a turn looks like once it was interrupted in that way: messages, in short, and why it went round. */
interface Outcome {
  readonly transcript: readonly string[];
  readonly transitions: readonly string[];
}

interface PhaseCase {
  readonly agent?: string;
  /** What the model says before it hears the message. */
  play(request: ChatRequest, name: string): Reply;
  /** Resolves when the turn is in that phase. */
  reached(name: string, session: string): Promise<unknown>;
  /** Lets the step go on that neither a steer nor, where it can't be cut, a send-now ends. */
  release(name: string, session: string): unknown;
  /** `send_now` is not released where it cuts. */
  readonly cuts: boolean;
  /** The phase as the end names it, where it has another name here. */
  readonly endPhase?: string;
  readonly outcomes: Readonly<Record<Kind, Outcome>>;
}

const plays = new Map<string, (request: ChatRequest) => Reply>();
const gates = new Map<string, (signal: AbortSignal) => Promise<void>>();
const holds = new Map<string, Hold>();

let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({
    rules: (request) => {
      const text = JSON.stringify(request.messages);
      const found = [...plays].find(([name]) => text.includes(name));
      return found ? billed(found[1](request), request) : status(400, 'nobody wrote this conversation');
    },
    expectKey: true,
    agent: { tools: ['write_file', 'list_files', 'shell', 'wait_for', ...SLOW_TOOLS.map(({ name }) => name)] },
    tools: SLOW_TOOLS,
    others: [
      { name: 'asks', attended: true, permissions: { mode: 'default' } },
      { name: 'small', limits: { outputTokens: 1_000, contextTokens: 40_000 } },
    ],
    definition: {
      hooks: [
        {
          event: 'StopGate',
          async run({ workspace }, signal) {
            const gate = gates.get(basename(workspace));
            gates.delete(basename(workspace));
            await gate?.(signal);
            return null;
          },
        },
      ],
    },
  });
  runs = createRuns(at.house);
});
afterAll(async () => {
  await at.close();
});

const held = (name: string) => {
  const stop = holds.get(name) ?? hold();
  holds.set(name, stop);
  return stop;
};
const fileIn = (name: string, file: string) => join(at.workspaces, name, file);
const approvalOf = async (session: string) =>
  (await runs.approvals('default')).find((each) => each.session === session)?.id;
/** Null before the turn has begun. */
const stateOf = async (session: string) =>
  await turnHandle(at, `${session}/1`)
    .query(turnState)
    .catch(() => null);
const calling = (name: string, args: unknown) => callTools([{ name, arguments: args }]);

const opened = new Map<string, () => void>();

const PHASES: Readonly<Record<string, PhaseCase>> = {
  sampling: {
    play: (_, name) => paced(say('One two three four.'), { hold: held(name), holdAt: 3 }),
    reached: async (name, session) => {
      await held(name).reached;
      await until('words are shown', () => at.house.database.db.$count(delta, eq(delta.turn, `${session}/1`)));
    },
    release: (name) => held(name).release(),
    cuts: true,
    outcomes: {
      steer: { transcript: ['user', 'assistant', 'user', 'assistant'], transitions: ['opened', 'input_arrived'] },
      send_now: { transcript: ['user', 'cut', 'user', 'assistant'], transitions: ['opened', 'message_cut_in'] },
      cancel: { transcript: ['user', 'cut', 'interruption'], transitions: ['opened'] },
    },
  },
  gate: {
    agent: 'asks',
    play: () =>
      callTools([
        { name: 'write_file', arguments: { path: 'one.txt', content: 'one' } },
        { name: 'list_files', arguments: {} },
      ]),
    reached: (_, session) => until('it asks', () => approvalOf(session)),
    release: async (_, session) =>
      await runs.answer('default', (await approvalOf(session)) ?? '', { answer: 'approved', by: 'pat' }),
    cuts: true,
    outcomes: {
      steer: {
        transcript: ['user', 'assistant', 'Wrote', '', 'user', 'assistant'],
        transitions: ['opened', 'tool_results'],
      },
      send_now: {
        transcript: ['user', 'assistant', 'A person answered with', 'Not started: a person', 'user', 'assistant'],
        transitions: ['opened', 'tool_results'],
      },
      cancel: {
        transcript: ['user', 'assistant', 'Not started: the turn', 'Not started: the turn', 'interruption'],
        transitions: ['opened'],
      },
    },
  },
  tools: {
    play: () => calling('shell', { command: 'echo $$ > ready; while [ ! -e go ]; do sleep 0.05; done; echo done' }),
    reached: (name) => until('the command runs', () => existsSync(fileIn(name, 'ready'))),
    release: (name) => writeFileSync(fileIn(name, 'go'), ''),
    cuts: false,
    outcomes: {
      steer: {
        transcript: ['user', 'assistant', 'done', 'user', 'assistant'],
        transitions: ['opened', 'tool_results'],
      },
      send_now: {
        transcript: ['user', 'assistant', 'done', 'user', 'assistant'],
        transitions: ['opened', 'tool_results'],
      },
      cancel: { transcript: ['user', 'assistant', 'Interrupted while', 'interruption'], transitions: ['opened'] },
    },
  },
  reading: {
    play: () => calling('slow_read', {}),
    reached: (name) => until('it reads', () => existsSync(fileIn(name, 'reading'))),
    release: (name) => writeFileSync(fileIn(name, 'go'), ''),
    cuts: true,
    endPhase: 'tools',
    outcomes: {
      steer: {
        transcript: ['user', 'assistant', 'reading is over', 'user', 'assistant'],
        transitions: ['opened', 'tool_results'],
      },
      send_now: {
        transcript: ['user', 'assistant', 'Stopped before', 'user', 'assistant'],
        transitions: ['opened', 'tool_results'],
      },
      cancel: { transcript: ['user', 'assistant', 'Stopped before', 'interruption'], transitions: ['opened'] },
    },
  },
  waiting: {
    play: () => calling('wait_for', { event: 'a build' }),
    reached: (_, session) => until('it waits', () => approvalOf(session)),
    release: () => {},
    cuts: true,
    outcomes: {
      steer: {
        transcript: ['user', 'assistant', 'The wait was interrupted', 'user', 'assistant'],
        transitions: ['opened', 'tool_results'],
      },
      send_now: {
        transcript: ['user', 'assistant', 'The wait was interrupted', 'user', 'assistant'],
        transitions: ['opened', 'tool_results'],
      },
      cancel: { transcript: ['user', 'assistant', 'Stopped while it waited', 'interruption'], transitions: ['opened'] },
    },
  },
  resting: {
    play: (_, name) => {
      const stop = holds.get(name);
      if (stop) return say('Heard nothing.');
      held(name);
      return status(429, { error: { message: 'slow down' } }, { 'retry-after': '100' });
    },
    reached: (_, session) => until('it rests', async () => (await stateOf(session))?.phase.kind === 'resting'),
    async release(_, session) {
      expect((await stateOf(session))?.phase.kind, 'a steer does not end a rest').toBe('resting');
      await at.send(session, 'send_now', 'now');
    },
    cuts: true,
    outcomes: {
      steer: { transcript: ['user', 'user', 'user', 'assistant'], transitions: ['opened', 'message_cut_in'] },
      send_now: { transcript: ['user', 'user', 'assistant'], transitions: ['opened', 'message_cut_in'] },
      cancel: { transcript: ['user', 'interruption'], transitions: ['opened'] },
    },
  },
  compacting: {
    agent: 'small',
    play: (request, name) =>
      isSummary(request) ? paced(say('So far.'), { hold: held(name) }) : step(request.messages.length, 24_000),
    reached: (name) => held(name).reached,
    release: (name) => held(name).release(),
    cuts: false,
    outcomes: {
      steer: { transcript: ['compaction', 'user', 'assistant'], transitions: ['compacted'] },
      send_now: { transcript: ['compaction', 'user', 'assistant'], transitions: ['compacted'] },
      cancel: {
        transcript: ['assistant', expect.any(String) as string, 'interruption'],
        transitions: ['tool_results'],
      },
    },
  },
  ending: {
    play: () => say('Done.'),
    reached: (name) =>
      new Promise<void>((resolve) => {
        gates.set(name, (signal) => {
          resolve();
          return new Promise((pass) => {
            opened.set(name, pass);
            signal.addEventListener('abort', () => pass());
          });
        });
      }),
    release: (name) => opened.get(name)?.(),
    cuts: true,
    outcomes: {
      steer: { transcript: ['user', 'assistant', 'user', 'assistant'], transitions: ['opened', 'input_arrived'] },
      send_now: { transcript: ['user', 'assistant', 'user', 'assistant'], transitions: ['opened', 'input_arrived'] },
      cancel: { transcript: ['user', 'assistant', 'interruption'], transitions: ['opened'] },
    },
  },
};

async function shortTranscript(session: string): Promise<string[]> {
  return (await at.transcript(session)).map((message) => {
    if (message.kind === 'assistant') return message.cut ? 'cut' : 'assistant';
    return message.kind === 'tool_result' ? message.text : message.kind;
  });
}

const endsWith = (transcript: readonly string[], expected: readonly string[]) => {
  const tail = transcript.slice(-expected.length);
  expect(tail.map((text, n) => (text.includes(String(expected[n])) ? expected[n] : text))).toEqual(expected);
};

async function begin(phase: PhaseCase, name: string): Promise<string> {
  plays.set(name, (request) => {
    const isHeard = request.messages.some(({ content }) => String(content) === `message of ${name}`);
    return isHeard ? say('Heard.') : phase.play(request, name);
  });
  mkdirSync(join(at.workspaces, name), { recursive: true });
  // The gate of the phase `ending` has to be there before the model has answered.
  let session = '';
  const submitted = at.submit(name, { workspace: name, ...(phase.agent ? { agent: phase.agent } : {}) });
  const reached = phase === PHASES.ending ? phase.reached(name, session) : null;
  session = (await submitted).session;
  await (reached ?? phase.reached(name, session));
  return session;
}

const inputsOf = async (session: string) =>
  await at.house.database.db.select().from(input).where(eq(input.session, session)).orderBy(asc(input.seq));

describe.concurrent.each(Object.keys(PHASES))('while %s', (phaseName) => {
  const phase = PHASES[phaseName]!;

  it.each(['steer', 'send_now'] as const)('a %s', { timeout: 120_000 }, async (kind) => {
    const name = `${phaseName}-${kind}`;
    const session = await begin(phase, name);
    const id = await at.send(session, kind, `message of ${name}`);
    if (!(kind === 'send_now' && phase.cuts)) {
      await until('the turn has heard it', async () => {
        const [row] = await at.house.database.db.select().from(input).where(eq(input.id, id));
        return row?.message != null || (await stateOf(session))?.inbox.includes(id) === true;
      });
      await phase.release(name, session);
    }
    expect(await at.ended(session, 1, LIMIT_MS)).toMatchObject({
      endReason: 'COMPLETED',
      endDetail: 'final_answer',
      n: 1,
    });
    const { transcript, transitions } = phase.outcomes[kind];
    const short = await shortTranscript(session);
    endsWith(short, transcript);
    if (phaseName !== 'compacting') expect(short).toHaveLength(transcript.length);
    const events = await at.events(session);
    const seen = only(events, 'sample.started').map(({ transition }) => transition);
    expect(seen.slice(-transitions.length)).toEqual(transitions);
    expect(only(events, 'input.joined').filter((each) => each.input === id)).toHaveLength(1);
    expect(only(events, 'turn.ended')).toHaveLength(1);
    expect(new Set((await inputsOf(session)).map((row) => row.status))).toEqual(new Set(['consumed']));
    if (phaseName === 'sampling' && kind === 'send_now')
      expect(only(events, 'stream.ended').map(({ reason, signal }) => [reason, signal])).toEqual([
        ['cancelled', 'message'],
        ['stop', 'stop'],
      ]);
    if (phaseName === 'ending')
      expect(only(events, 'stop_gate.answered').map(({ answer }) => answer)).toEqual([
        kind === 'steer' ? 'pass' : 'cut',
        'pass',
      ]);
  });

  it('a cancel, which drops what was said before it', { timeout: 120_000 }, async () => {
    const name = `${phaseName}-cancel`;
    const session = await begin(phase, name);
    const waits = phaseName === 'waiting' ? null : await at.send(session, 'steer', `message of ${name}`);
    await cancelTurn(at, `${session}/1`, 'pat', 'enough');
    expect(await at.ended(session, 1, LIMIT_MS)).toMatchObject({
      endReason: 'ABORTED',
      endDetail: 'user_cancel',
      endPhase: phase.endPhase ?? phaseName,
      endBy: 'pat',
    });
    endsWith(await shortTranscript(session), phase.outcomes.cancel.transcript);
    const events = await at.events(session);
    expect(only(events, 'input.dropped')).toMatchObject(
      waits === null ? [] : [{ input: waits, status: 'dropped_by_cancel', by: 'pat', why: 'enough' }],
    );
    expect(only(events, 'turn.ended')).toHaveLength(1);
    if (waits === null) return;
    const told = (await runs.inputs('default', session))?.inputs.find((each) => each.id === waits);
    expect(told).toMatchObject({ status: 'dropped_by_cancel', dropped: { by: 'pat', why: 'enough' } });
  });
});

it.concurrent('in cleanup what is said is dropped, and a second cancel is second', { timeout: 120_000 }, async () => {
  const name = 'cleanup';
  plays.set(name, () => calling('shell', { command: 'trap "" TERM; echo $$ > ready; while :; do sleep 0.05; done' }));
  mkdirSync(join(at.workspaces, name), { recursive: true });
  const { session } = await at.submit(name, { workspace: name });
  await until('the command runs', () => existsSync(fileIn(name, 'ready')));
  const first = await cancelTurn(at, `${session}/1`, 'pat');
  await until('the turn cleans up', async () => (await stateOf(session))?.asked != null);
  const said = [await at.send(session, 'steer', 'late'), await at.send(session, 'send_now', 'later')];
  const second = await cancelTurn(at, `${session}/1`, 'sam');
  expect(await at.ended(session, 1, LIMIT_MS)).toMatchObject({ endDetail: 'user_cancel', endBy: 'pat' });
  const rows = await inputsOf(session);
  expect(rows.map(({ id, status: how }) => [id, how])).toEqual([
    [rows[0]?.id, 'consumed'],
    ...said.map((id) => [id, 'dropped_by_cancel']),
  ]);
  expect(await cancelsOf(at, `${session}/1`)).toMatchObject([
    { id: first.id, answer: 'took' },
    { id: second.id, answer: 'second' },
  ]);
});

/** A turn that is about these calls, told something that can't wait once they have written these files. */
async function toldAmid(name: string, tools: readonly string[], files: readonly string[]) {
  plays.set(name, ({ messages }) =>
    messages.some(({ content }) => content === 'now')
      ? say('Heard.')
      : callTools(tools.map((tool) => ({ name: tool, arguments: {} }))),
  );
  mkdirSync(join(at.workspaces, name), { recursive: true });
  const { session } = await at.submit(name, { workspace: name });
  await until('they run', () => files.every((file) => existsSync(fileIn(name, file))));
  const id = await at.send(session, 'send_now', 'now');
  const finished = async () => only(await at.events(session), 'call.finished').map((each) => [each.tool, each.status]);
  const heard = async () => (await stateOf(session))?.urgent?.includes(id) === true;
  return { session, finished, heard, go: () => writeFileSync(fileIn(name, 'go'), '') };
}

describe.concurrent('a send-now among calls', { timeout: 120_000 }, () => {
  it('cuts a quick reader that takes too long', async () => {
    const { session, finished } = await toldAmid('quick', ['quick_read'], ['reading_quickly']);
    expect(await at.ended(session, 1, LIMIT_MS)).toMatchObject({ endDetail: 'final_answer' });
    expect(await finished()).toEqual([['quick_read', 'stopped']]);
    endsWith(await shortTranscript(session), ['user', 'assistant', 'Stopped before', 'user', 'assistant']);
  });

  it('leaves what acts alone, and begins no reader behind it', async () => {
    const tools = ['slow_read', 'slow_act', 'read_after'];
    const { session, finished, go } = await toldAmid('beside', tools, ['reading', 'acting']);
    const cut = await until('the reader is cut', async () => ((await finished()).length > 0 ? await finished() : null));
    expect(cut).toEqual([['slow_read', 'stopped']]);
    go();
    expect(await at.ended(session, 1, LIMIT_MS)).toMatchObject({ endDetail: 'final_answer' });
    expect(await finished()).toEqual([...cut, ['slow_act', 'ok'], ['read_after', 'stopped']]);
    expect(existsSync(fileIn('beside', 'reading_after')), 'the last one has begun').toBe(false);
    const results = ['Stopped before', 'acting is over', 'Stopped before'];
    endsWith(await shortTranscript(session), ['user', 'assistant', ...results, 'user', 'assistant']);
  });

  it('waits for what is found out of a call whose answer was lost', async () => {
    const { session, finished, heard, go } = await toldAmid('doubt', ['lost_act'], ['asking']);
    await until('the turn has heard it', heard);
    expect(await finished()).toEqual([]);
    go();
    expect(await at.ended(session, 1, LIMIT_MS)).toMatchObject({ endDetail: 'final_answer' });
    expect(await finished()).toEqual([['lost_act', 'ok']]);
    expect(only(await at.events(session), 'effect.settled').map(({ as }) => as)).toEqual(['settled_done']);
    endsWith(await shortTranscript(session), ['user', 'assistant', 'It had happened', 'user', 'assistant']);
  });
});
