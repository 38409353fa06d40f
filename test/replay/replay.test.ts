import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { callTools, type ChatRequest, countToolResults, hold, paced, say, status } from '../../testing/index.ts';
import { workflowBundle } from '../../worker/bundle.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import {
  cancelTurn,
  closedStatus,
  type ExportedHistory,
  exportHistories,
  lengthen,
  only,
} from '../support/engine-facts.ts';
import { goalHistories, playGoals } from './goal-histories.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const HISTORIES = fileURLToPath(new URL('./histories', import.meta.url));

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  const rules = (request: ChatRequest) => playGoals(request) ?? talk.rules(request);
  at = await testHouse({ rules, others: [{ name: 'two-steps', limits: { maxSteps: 2 } }] });
});
afterAll(async () => {
  await at.close();
});

/** Throws where today's workflow code would have asked for something else than what the history holds. */
async function replay(history: unknown, workflowId: string): Promise<void> {
  const codePath = await workflowBundle(inject('bundleCache'));
  await Worker.runReplayHistory({ workflowBundle: { codePath } }, history, workflowId);
}

interface Recorded {
  readonly workflowId: string;
  readonly history: unknown;
}

// A recorded history stands for a workflow that was running when the code was deployed.
describe('a recorded history', () => {
  const files = readdirSync(HISTORIES).filter((name) => name.endsWith('.json'));

  it.each(files)('%s replays on this code', async (file) => {
    const { workflowId, history } = JSON.parse(readFileSync(join(HISTORIES, file), 'utf8')) as Recorded;
    await replay(history, workflowId);
  });

  it('would not replay if the code asked for something else', async () => {
    const { workflowId, history } = JSON.parse(
      readFileSync(join(HISTORIES, 'turn-completed.json'), 'utf8'),
    ) as Recorded;
    const other = JSON.parse(JSON.stringify(history).replaceAll('"name":"endTurn"', '"name":"endIt"')) as unknown;
    await expect(replay(other, workflowId)).rejects.toThrow(/[Nn]ondeterminism/);
  });

  it('names no machine', () => {
    expect(files.length).toBeGreaterThan(5);
    for (const file of files) {
      const text = decoded(readFileSync(join(HISTORIES, file), 'utf8'));
      expect(text).not.toMatch(/\d+@(?!recorder)|\/(tmp|work|home|root|var)\//);
      expect(text).not.toMatch(new RegExp(`@${hostname()}\\b`));
    }
  });
});

describe('a fresh history', () => {
  const reading = () =>
    callTools([
      { name: 'list_files', arguments: {} },
      { name: 'list_files', arguments: {} },
    ]);

  async function completes(): Promise<[string, string]> {
    const stop = hold();
    talk.on('completes', (request) =>
      userTexts(request).length > 1
        ? say('Done.')
        : countToolResults(request) > 0
          ? paced(say('Nearly.'), { hold: stop })
          : reading(),
    );
    const { session } = await at.submit('completes');
    await stop.reached;
    const steer = await at.send(session, 'steer', 'one more thing');
    await until('it is passed on', async () =>
      only(await at.events(session), 'input.accepted').some(({ input }) => input === steer),
    );
    stop.release();
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    return ['completed', session];
  }

  async function isCancelled(): Promise<[string, string]> {
    const stop = hold();
    talk.on('is cancelled', () => paced(say('One two three.'), { hold: stop, holdAt: 2 }));
    const { session } = await at.submit('is cancelled');
    await stop.reached;
    await cancelTurn(at, `${session}/1`, 'somebody');
    expect(await at.ended(session)).toMatchObject({ endDetail: 'user_cancel' });
    return ['cancelled', session];
  }

  async function goesOver(): Promise<[string, string]> {
    const stop = hold();
    talk.on('goes over', (request) =>
      countToolResults(request) === 0 ? paced(reading(), { hold: stop }) : say('Done.'),
    );
    const { session } = await at.submit('goes over');
    await stop.reached;
    await lengthen(at, `${session}/1`, 495);
    stop.release();
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    return ['continued', session];
  }

  async function runsTo(name: string, detail: string, agent?: string): Promise<[string, string]> {
    const { session } = await at.submit(name, agent ? { agent } : {});
    expect(await at.ended(session)).toMatchObject({ endDetail: detail });
    return [name, session];
  }

  it('replays: ends of every kind, sessions, recovery; RECORD_HISTORIES=1 keeps them', {
    timeout: 60_000,
  }, async () => {
    talk.on('limited', reading);
    talk.on('refused', () => status(400, { error: { message: 'no' } }));
    const waits = [status(429, { error: { message: 'wait' } }, { 'retry-after': '1' })];
    talk.on('rested', () => waits.shift() ?? say('Done.'));
    const runs = await Promise.all([
      completes(),
      isCancelled(),
      goesOver(),
      runsTo('limited', 'max_steps', 'two-steps'),
      runsTo('refused', 'invalid_request'),
      runsTo('rested', 'final_answer'),
    ]);
    for (const [, session] of runs) await closedStatus(at, turnWorkflowId(`${session}/1`));
    // One turn has two runs, and recovery has one.
    const histories = await exportHistories(at, runs.length * 2 + 2);
    for (const { history, workflowId } of histories) await replay(history, workflowId);
    if (process.env.RECORD_HISTORIES) keep(histories, new Map(runs), CLOSED);
  });

  it('replays: goals with checks, a judge, a pause, wakes, a Schedule, and as a fresh run; so kept', {
    timeout: 60_000,
  }, async () => {
    const goals = await goalHistories(at);
    const ids = goals.map(([, id]) => id);
    const isTheirs = ({ workflowId, type }: ExportedHistory) =>
      (type === 'goalWorkflow' || type === 'wakeWorkflow') && ids.some((id) => workflowId.includes(id));
    // A run for each of them, one more that goes on as new, a firing and the goal that it began.
    const histories = await until('their runs are listed', async () => {
      const found = (await exportHistories(at, 1)).filter(isTheirs);
      return found.length >= goals.length + 2 && found.some(({ type }) => type === 'wakeWorkflow') ? found : null;
    });
    for (const { history, workflowId } of histories) await replay(history, workflowId);
    if (process.env.RECORD_HISTORIES) keep(histories, new Map(goals), GOALS);
  });

  const GOALS = /^(goal|wake)-/;
  const CLOSED = /^(session|turn)-/;

  function keep(histories: readonly ExportedHistory[], runs: ReadonlyMap<string, string>, those: RegExp): void {
    mkdirSync(HISTORIES, { recursive: true });
    for (const file of readdirSync(HISTORIES)) if (those.test(file)) rmSync(join(HISTORIES, file));
    const nameOf = (workflowId: string) => [...runs].find(([, session]) => workflowId.includes(session))?.[0];
    for (const { workflowId, type, status: how, history } of histories) {
      const name = nameOf(workflowId);
      if (type === 'recoveryWorkflow' || name === undefined) continue;
      if (type === 'sessionWorkflow' && name !== 'completed') continue;
      // The second run of the long one; its first is five hundred signals.
      if (name === 'continued' && how !== 'COMPLETED') continue;
      const file = `${type.replace('Workflow', '')}-${name}.json`;
      writeFileSync(join(HISTORIES, file), scrubbed({ workflowId, history: JSON.parse(historyToJSON(history)) }));
    }
  }

  /** Queue, identity and host of the machine that recorded give way to fixed names, in payloads too. */
  function scrubbed(recorded: Recorded): string {
    const queue = at.house.taskQueue;
    const clean = (text: string) =>
      text
        .replaceAll(`${queue}@${process.env.PAWL_HOST_ID || hostname()}`, 'pawl@recorder')
        .replaceAll(queue, 'pawl')
        .replaceAll(/\d+@[\w.-]+/g, '1@recorder');
    const text = JSON.stringify(recorded, (key, value: unknown) =>
      typeof value !== 'string'
        ? value
        : key === 'stackTrace'
          ? ''
          : key === 'data'
            ? recode(value, clean)
            : clean(value),
    );
    return `${text}\n`;
  }
});

function recode(base64: string, change: (text: string) => string): string {
  return Buffer.from(change(Buffer.from(base64, 'base64').toString('utf8'))).toString('base64');
}

/** The JSON with its payloads readable. */
function decoded(json: string): string {
  return json.replaceAll(
    /"data":"([A-Za-z0-9+/=]+)"/g,
    (_, data: string) => `"data":${JSON.stringify(Buffer.from(data, 'base64').toString('utf8'))}`,
  );
}
