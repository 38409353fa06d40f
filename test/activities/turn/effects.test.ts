import { randomBytes } from 'node:crypto';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { ApplicationFailure } from '@temporalio/common';
import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import { readBlob } from '../../../activities/store/blobs.ts';
import { effectKey } from '../../../activities/store/hash.ts';
import { call, effect } from '../../../activities/store/schema.ts';
import {
  defineTool,
  type Reconciled,
  type Tool,
  type ToolContext,
  type ToolResult,
} from '../../../activities/tools/define-tool.ts';
import { callTools, countToolResults, say } from '../../../testing/index.ts';
import { conversations } from '../../support/conversations.ts';
import { only } from '../../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../../support/test-house.ts';
import { until } from '../../support/until.ts';

/** What the tools of this file do in one conversation; each thing that happens is noted with its key. */
interface World {
  readonly log: string[];
  run(n: number, context: ToolContext): Promise<ToolResult>;
  reconcile?(n: number): Reconciled;
}

const worlds = new Map<string, World>();
const input = z.strictObject({ world: z.string() });
type Args = z.output<typeof input>;

function tool(name: string, change: Partial<Tool<Args>>): Tool {
  const count = (world: World, what: string) => world.log.filter((line) => line.startsWith(what)).length;
  return defineTool<Args>({
    name,
    description: name,
    input,
    settleAfterMs: 600,
    ...change,
    async run({ world: at }, context) {
      const world = worlds.get(at);
      if (!world) throw new Error('no such world');
      world.log.push(`run ${context.idempotencyKey.slice(0, 6)}`);
      return await world.run(count(world, 'run'), context);
    },
    ...(change.effect === 'once' && {
      reconcile: ({ world: at }: Args) => {
        const world = worlds.get(at);
        world?.log.push('ask');
        return Promise.resolve(world?.reconcile?.(count(world, 'ask')) ?? { kind: 'unknown' });
      },
    }),
  }) as Tool;
}

const tools = [
  tool('once', { effect: 'once', onUnknown: 'tell' }),
  tool('keyed', { effect: 'keyed', onUnknown: 'tell' }),
  tool('reader', { effect: 'none' }),
  tool('dies', { effect: 'once', onUnknown: 'tell' }),
];

/** The first attempt is lost while it acts; the engine calls the next one the eleventh. */
const dying: ActivityInterceptorsFactory = (context) => ({
  inbound: {
    async execute(asked, next) {
      const [request] = asked.args as [{ tool?: string; assistant: string; ordinal: number }];
      if (context.info.activityType !== 'runTool' || request.tool !== 'dies') return await next(asked);
      const { attempt } = context.info;
      if (attempt > 1) Object.assign(context.info, { attempt: attempt + 9 });
      const key = effectKey(request.assistant, request.ordinal).slice(0, 6);
      const making = next(asked);
      if (attempt > 1) return await making;
      making.catch(() => {});
      await until('it acts', () => Promise.resolve([...worlds.values()].some(({ log }) => log.includes(`run ${key}`))));
      throw ApplicationFailure.retryable('its worker was lost');
    },
  },
});
const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  process.env.EFFECTS_TEST_TOKEN = 'test-effects-token';
  at = await testHouse({ rules: talk.rules, tools, interceptors: dying });
});
afterAll(async () => {
  delete process.env.EFFECTS_TEST_TOKEN;
  await at.close();
});

const done: ToolResult = { isError: false, text: 'done' };
const lost = () => Promise.reject(Object.assign(new Error('reset password=test-pw'), { code: 'ECONNRESET' }));

/** One turn with one call; what it left. */
async function play(name: string, world: Omit<World, 'log'>) {
  const text = `${name}-${randomBytes(4).toString('hex')}`;
  const log: string[] = [];
  worlds.set(text, { ...world, log });
  talk.on(text, (request) =>
    countToolResults(request) === 0 ? callTools([{ name, arguments: { world: text } }]) : say('Done.'),
  );
  const { session } = await at.submit(text);
  const turn = await at.ended(session);
  const { db } = at.house.database;
  const [row] = await db.select().from(call).where(eq(call.turn, turn.id));
  const [ledger] = await db.select().from(effect).where(eq(effect.turn, turn.id)).orderBy(asc(effect.key));
  const events = await at.events(session);
  return {
    log: log.map((line) => line.replace(/^run .*/, 'run')),
    keys: new Set(log.filter((line) => line.startsWith('run'))).size,
    call: row,
    end: `${turn.endReason}/${turn.endDetail}`,
    signal: turn.endSignal,
    state: ledger?.state,
    started: only(events, 'call.started').length,
    settled: only(events, 'effect.settled').map(({ as }) => as),
  };
}

describe.concurrent('a call whose answer is lost', () => {
  it('keyed: is sent again with the same key until an answer comes', async () => {
    const left = await play('keyed', { run: (n) => (n < 3 ? lost() : Promise.resolve(done)) });
    expect(left).toMatchObject({
      log: ['run', 'run', 'run'],
      keys: 1,
      started: 3,
      state: 'succeeded',
      call: { status: 'ok' },
    });
  });

  it('keyed: three times at most, then nobody knows', async () => {
    const left = await play('keyed', { run: lost });
    expect(left).toMatchObject({
      log: ['run', 'run', 'run'],
      keys: 1,
      state: 'unknown',
      call: { status: 'unknown', note: 'unknown_outcome' },
    });
  });

  it('once, and it happened: what was found is the result', async () => {
    const left = await play('once', {
      run: lost,
      reconcile: () => ({ kind: 'done', result: { isError: false, text: 'found' } }),
    });
    expect(left).toMatchObject({
      log: ['run', 'ask'],
      started: 1,
      settled: ['settled_done'],
      state: 'settled_done',
      call: { status: 'ok', result: 'found' },
    });
  });

  // The request may be on its way still: one look that finds nothing proves nothing.
  it('once: absent counts only when it is asked after the settling time', async () => {
    const left = await play('once', {
      run: lost,
      reconcile: (n) => (n === 1 ? { kind: 'absent' } : { kind: 'done', result: done }),
    });
    expect(left).toMatchObject({
      log: ['run', 'ask', 'ask'],
      started: 1,
      settled: ['settled_done'],
      call: { status: 'ok' },
    });
  });

  it('once: a look-up that fails is tried again while it settles', async () => {
    const left = await play('once', {
      run: lost,
      reconcile: (n) => (n === 1 ? { kind: 'unknown' } : { kind: 'done', result: done }),
    });
    expect(left).toMatchObject({ log: ['run', 'ask', 'ask'], settled: ['settled_done'] });
  });

  it('once, and known to be absent: it is made again, as an attempt of its own', async () => {
    const left = await play('once', {
      run: (n) => (n === 1 ? lost() : Promise.resolve(done)),
      reconcile: () => ({ kind: 'absent' }),
    });
    expect(left).toMatchObject({
      started: 2,
      keys: 1,
      settled: ['settled_absent'],
      state: 'succeeded',
      call: { status: 'ok' },
    });
    expect(left.log.filter((line) => line === 'run')).toHaveLength(2);
  });

  it('once, and absent again and again: three times, then the model learns that it had no effect', async () => {
    const left = await play('once', { run: lost, reconcile: () => ({ kind: 'absent' }) });
    expect(left).toMatchObject({ started: 3, state: 'settled_absent', call: { status: 'error', note: 'absent' } });
    expect(left.settled).toEqual(['settled_absent', 'settled_absent', 'settled_absent']);
  });

  it('once, and nobody can say: it is never made again', async () => {
    const left = await play('once', { run: lost });
    expect(left).toMatchObject({ started: 1, settled: ['unknown'], state: 'unknown', call: { status: 'unknown' } });
    expect(left.log.filter((line) => line === 'run')).toHaveLength(1);
  });
});

describe.concurrent('a call whose workers were lost ten times is not made any more', () => {
  const run = (_n: number, { signal }: ToolContext) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))));

  // Trap: what the last of them did would stay unasked, and a turn end that had its result.
  it('and it happened: what was found is the result, and the turn goes on', async () => {
    const left = await play('dies', { run, reconcile: () => ({ kind: 'done', result: done }) });
    expect(left).toMatchObject({
      log: ['run', 'ask'],
      settled: ['settled_done'],
      call: { status: 'ok', result: 'done' },
      end: 'COMPLETED/final_answer',
    });
  });

  it('and nobody can say: ERROR/tool_infrastructure, and the ledger knows that it is unknown', async () => {
    const left = await play('dies', { run });
    expect(left).toMatchObject({
      log: ['run', 'ask'],
      settled: ['unknown'],
      state: 'unknown',
      call: { status: 'unknown' },
      end: 'ERROR/tool_infrastructure',
      signal: { name: 'fault', type: 'tool.attempts_lost' },
    });
  });
});

describe.concurrent('what is stored', () => {
  it('has no secret in it: not the text, not the note, not the kept output', async () => {
    const secret = 'test-effects-token';
    const run = () =>
      Promise.resolve({
        isError: true,
        text: `a ${secret} b`,
        note: `note ${secret}`,
        output: Buffer.from(`\0${secret}`),
      });
    const { call: row } = await play('reader', { run });
    expect(row).toMatchObject({ result: 'a *** b', note: 'note ***' });
    const { db } = at.house.database;
    expect((await readBlob(db, 'default', row?.blob ?? ''))?.toString()).toBe('\0***');
    // Another tenant's blob looks like none.
    expect(await readBlob(db, 'other', row?.blob ?? '')).toBeNull();
  });

  // A failure says why, without what must not be said.
  it('says of a throw its class, its code and its first line, redacted', async () => {
    const { call: row } = await play('reader', { run: lost });
    expect(row?.note).toBe('Error ECONNRESET: reset password=***');
  });
});
