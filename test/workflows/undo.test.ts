import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { effect } from '../../activities/store/schema.ts';
import {
  defineTool,
  type Reconciled,
  type Tool,
  type ToolContext,
  type Undo,
} from '../../activities/tools/define-tool.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, countToolResults, say } from '../../testing/index.ts';
import type { RunningWorker } from '../../worker/start-worker.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations } from '../support/conversations.ts';
import { cancelTurn, closedStatus, only, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

/** What happens to one call, by the name of its conversation; each thing that its tool was asked is noted. */
interface World {
  readonly log: string[];
  /** Resolves when the call has acted. */
  readonly acted: Promise<void>;
  act(): void;
  fate: Reconciled['kind'];
  undo(context: ToolContext): Promise<void>;
}

const worlds = new Map<string, World>();
const input = z.strictObject({ world: z.string() });
type Args = z.output<typeof input>;

function worldOf({ world }: Args): World {
  const found = worlds.get(world);
  if (!found) throw new Error('no such world');
  return found;
}

/** Acts at once, and then takes for ever, unless it is a quick one. */
function actor(name: string, undo: Omit<Undo<Args>, 'run'>, change: Partial<Tool<Args>> = {}): Tool {
  return defineTool<Args>({
    name,
    description: 'Acts.',
    input,
    onUnknown: 'ask',
    locks: ({ world }) => [{ resource: `${name} ${world}`, mode: 'write' }],
    prepare: () => Promise.resolve({ noted: 'before' }),
    async run(args, { signal }) {
      const world = worldOf(args);
      world.log.push(`run ${name}`);
      world.act();
      if (name === 'quick') return { isError: false, text: 'done' };
      if (name === 'doubtful') throw new Error('the answer was lost');
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return { isError: true, text: 'stopped', aborted: 'in_the_middle' };
    },
    reconcile(args) {
      const { fate } = worldOf(args);
      return Promise.resolve(
        fate === 'done' ? { kind: fate, result: { isError: false, text: 'found' } } : { kind: fate },
      );
    },
    undo: {
      ...undo,
      async run(args, context) {
        const world = worldOf(args);
        world.log.push(`undo ${name} ${JSON.stringify(context.details)}`);
        await world.undo(context);
      },
    },
    ...change,
  }) as Tool;
}

const names = ['careful', 'bold', 'quick', 'doubtful', 'patient', 'again'];
const talk = conversations();
let at: TestHouse;
let runs: Runs;
let worker: RunningWorker;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    tools: [
      actor('careful', {}),
      actor('bold', { onUnknown: 'run' }),
      actor('quick', { onUnknown: 'run' }),
      actor('doubtful', {}),
      actor('patient', {}),
      actor('again', { effect: 'idempotent' }),
    ],
    agent: { tools: names, attended: true },
    worker: false,
  });
  worker = await at.startWorker();
  runs = createRuns(at.house);
});
afterAll(async () => {
  await at.close();
});

async function begin(name: string, tools: readonly string[], change: Partial<Pick<World, 'fate' | 'undo'>> = {}) {
  let act = () => {};
  const acted = new Promise<void>((resolve) => (act = resolve));
  const world: World = { log: [], acted, act, fate: 'done', undo: () => Promise.resolve(), ...change };
  worlds.set(name, world);
  talk.on(name, (request) =>
    countToolResults(request) === 0
      ? callTools(tools.map((tool) => ({ name: tool, arguments: { world: name } })))
      : say('Done.'),
  );
  const { session } = await at.submit(name);
  return { session, turn: `${session}/1`, world };
}

/** Cancels it once it has acted; what the tool was asked, and what the ledger, the events and the model are told. */
async function cancelled({ session, turn, world }: Awaited<ReturnType<typeof begin>>, limitMs = 30_000) {
  await world.acted;
  await cancelTurn(at, turn, 'pat');
  expect(await at.ended(session, 1, limitMs)).toMatchObject({ endReason: 'ABORTED', endDetail: 'user_cancel' });
  expect(await closedStatus(at, turnWorkflowId(turn))).toBe('CANCELLED');
  return { log: world.log, ...(await left(session, turn)) };
}

async function left(session: string, turn: string) {
  const { db } = at.house.database;
  const ledger = await db.select().from(effect).where(eq(effect.turn, turn)).orderBy(asc(effect.tool));
  const events = (await at.events(session)).map(({ event }) => event);
  return {
    ledger: ledger.map(({ state, undo }) => [state, undo]),
    events: events.flatMap((event) =>
      event.kind === 'effect.undone' ? [event.as] : event.kind === 'effect.undoing' ? ['undoing'] : [],
    ),
    told: (await at.transcript(session)).flatMap((each) => (each.kind === 'tool_result' ? [each.text] : [])),
  };
}

const UNKNOWN =
  'Interrupted while it ran: whether it took effect is not known. Check the state of things before you repeat it.';
const BACK = '[When the work was stopped, this was taken back: it has no effect any more.]';

describe.concurrent('a call that a cancel cuts in the middle', () => {
  it('has happened: it is taken back, once, before the end', async () => {
    const begun = await begin('happened', ['careful']);
    expect(await cancelled(begun)).toEqual({
      log: ['run careful', 'undo careful {"noted":"before"}'],
      ledger: [['settled_done', 'undone']],
      events: ['undoing', 'undone'],
      told: [`found\n${BACK}`],
    });
    const events = (await at.events(begun.session)).map(({ event }) => event.kind);
    expect(events.indexOf('effect.undone')).toBeLessThan(events.indexOf('turn.ended'));
    // Its files are where its call ran.
    const { events: history = [] } = await turnHandle(at, begun.turn).fetchHistory();
    const queues = (history ?? []).flatMap(({ activityTaskScheduledEventAttributes: scheduled }) =>
      scheduled?.activityType?.name === 'undoCall' || scheduled?.activityType?.name === 'runTool'
        ? [scheduled.taskQueue?.name]
        : [],
    );
    expect([queues.length, new Set(queues).size]).toEqual([2, 1]);
  });

  it('has not: there is nothing to be taken back', async () => {
    expect(await cancelled(await begin('absent', ['bold'], { fate: 'absent' }))).toMatchObject({
      log: ['run bold'],
      ledger: [['settled_absent', null]],
      events: [],
    });
  });

  it('may have, and nobody knows: it stays, unless its tool says that taking it back is safe', async () => {
    expect(await cancelled(await begin('leave', ['careful'], { fate: 'unknown' }))).toEqual({
      log: ['run careful'],
      ledger: [['unknown', null]],
      events: [],
      told: [`${UNKNOWN}\nOutput until then:\nstopped`],
    });
    expect(await cancelled(await begin('safe', ['bold'], { fate: 'unknown' }))).toEqual({
      log: ['run bold', 'undo bold {"noted":"before"}'],
      ledger: [['unknown', 'undone']],
      events: ['undoing', 'undone'],
      told: [`${UNKNOWN}\nOutput until then:\nstopped\n${BACK}`],
    });
  });

  it('and one that came back before: that one stays', async () => {
    const begun = await begin('two', ['quick', 'careful']);
    await until('the quick one is back and the other runs', async () => {
      const finished = only(await at.events(begun.session), 'call.finished').length;
      return finished === 1 && begun.world.log.length === 2;
    });
    expect(await cancelled(begun)).toMatchObject({
      ledger: [
        ['settled_done', 'undone'],
        ['succeeded', null],
      ],
      events: ['undoing', 'undone'],
      told: ['done', `found\n${BACK}`],
    });
  });

  it('while a person is asked what became of it', async () => {
    const begun = await begin('in doubt', ['doubtful'], { fate: 'unknown' });
    await until('a person is asked', async () =>
      (await runs.approvals('default')).some(({ session }) => session === begun.session),
    );
    // It is asked for once more, and is there by now.
    begun.world.fate = 'done';
    expect(await cancelled(begun)).toMatchObject({
      log: ['run doubtful', 'undo doubtful {"noted":"before"}'],
      ledger: [['settled_done', 'undone']],
      told: [`found\n${BACK}`],
    });
  });

  it('can’t be taken back: the ledger and the model learn it, and the turn ends all the same', async () => {
    const undo = () => Promise.reject(Object.assign(new Error('gone password=test-pw'), { code: 'E_GONE' }));
    const begun = await begin('fails', ['careful'], { undo });
    expect(await cancelled(begun)).toMatchObject({
      ledger: [['settled_done', 'failed']],
      events: ['undoing', 'failed'],
      told: ['found\n[When the work was stopped, taking this back was tried and failed. Check the state of things.]'],
    });
    expect(only(await at.events(begun.session), 'effect.undone')).toMatchObject([
      { note: 'Error E_GONE: gone password=***' },
    ]);
  });

  // Cleaning up has its own deadline: past it the end is written anyway.
  it('and an undo that takes for ever: the turn ends after 30 s', { timeout: 60_000 }, async () => {
    const begun = await begin('for ever', ['patient'], { undo: () => new Promise(() => {}) });
    await begun.world.acted;
    const from = Date.now();
    const { ledger, told } = await cancelled(begun, 50_000);
    expect(Date.now() - from).toBeGreaterThan(25_000);
    expect(Date.now() - from).toBeLessThan(45_000);
    expect([['started'], ['unknown']]).toContainEqual([ledger[0]?.[1]]);
    expect(told[0]).toMatch(/whether it worked is not known/);
    await until(
      'the ledger says that nobody knows',
      async () => (await left(begun.session, begun.turn)).ledger[0]?.[1] === 'unknown',
    );
  });
});

// The next worker finds that one began, and nobody says how far it came.
describe('an undo that is lost with its worker', () => {
  it.each([
    [
      'that may be repeated is begun anew',
      'again',
      ['undo again', 'undo again'],
      'undone',
      ['undoing', 'undoing', 'undone'],
    ],
    [
      'that must not happen twice is left, and nobody knows',
      'careful',
      ['undo careful'],
      'unknown',
      ['undoing', 'unknown'],
    ],
  ] as const)('%s', { timeout: 60_000 }, async (_name, tool, undos, as, events) => {
    let began = () => {};
    const undoing = new Promise<void>((resolve) => (began = resolve));
    let count = 0;
    const undo = () => {
      count += 1;
      began();
      return count === 1 ? new Promise<void>(() => {}) : Promise.resolve();
    };
    const begun = await begin(`lost: ${tool}`, [tool], { undo });
    const over = cancelled(begun, 50_000);
    await undoing;
    await worker.stop();
    worker = await at.startWorker();
    const { log, ...rest } = await over;
    expect(log.filter((line) => line.startsWith('undo')).map((line) => line.replace(/ \{.*/, ''))).toEqual(undos);
    expect(rest).toMatchObject({ ledger: [['settled_done', as]], events });
  });
});

// Nobody asked for this end, and nothing may be done about it but to settle it.
it('an interruption takes nothing back', { timeout: 60_000 }, async () => {
  const { session, turn, world } = await begin('interrupted', ['bold']);
  await world.acted;
  await turnHandle(at, turn).terminate('the test kills it');
  expect(await at.ended(session, 1, 50_000)).toMatchObject({ endReason: 'INTERRUPTED', endDetail: 'terminated' });
  expect(world.log).toEqual(['run bold']);
  expect(await left(session, turn)).toMatchObject({ events: [] });
});
