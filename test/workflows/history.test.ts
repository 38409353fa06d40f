import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporal } from '@temporalio/proto';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { call } from '../../activities/store/schema.ts';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { C, callTools, chunks, countToolResults, hold, paced, say, status } from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { cancelTurn, exportHistories, type History, only, runsOf, turnHandle } from '../support/engine-facts.ts';
import { newMarker, piecesIn } from '../support/marker.ts';
import { note, percentile } from '../support/numbers.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const { History: HistoryProto } = temporal.api.history.v1;
const { DescribeWorkflowExecutionResponse } = temporal.api.workflowservice.v1;

const MARKER = newMarker();
const STEPS = 300;

const failing = defineTool({
  name: 'failing',
  description: 'Fails.',
  input: z.strictObject({ text: z.string() }),
  effect: 'none',
  run: ({ text }) => Promise.reject(new Error(`could not read ${text}`)),
});

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    expectKey: true,
    tools: [failing],
    agent: { tools: ['read_file', 'write_file', 'edit_file', 'list_files', 'search_text', 'shell', 'failing'] },
    others: [{ name: 'long', limits: { maxSteps: STEPS } }],
  });
});
afterAll(async () => {
  await at.close();
});

/** Bytes of each step: from the scheduling of its sample to that of the next one. */
function bytesOfSteps(runs: readonly History[]): { readonly bytes: number; readonly hasSwitch: boolean }[] {
  const steps: { bytes: number; hasSwitch: boolean }[] = [];
  for (const run of runs) {
    for (const event of run.events ?? []) {
      if (event.activityTaskScheduledEventAttributes?.activityType?.name === 'sample')
        steps.push({ bytes: 0, hasSwitch: false });
      const step = steps.at(-1);
      if (!step) continue;
      step.bytes += HistoryProto.encode({ events: [event] }).finish().length;
      if (event.workflowExecutionStartedEventAttributes) step.hasSwitch = true;
    }
  }
  return steps;
}

it('grows by the same number of bytes at step 300 as at step 30', { timeout: 200_000 }, async () => {
  // Never the same twice in a row, which would be no progress.
  talk.on('long work', (request) =>
    callTools([{ name: 'list_files', arguments: { depth: 1 + (countToolResults(request) % 2) } }], {
      text: 'I look again. '.repeat(20),
    }),
  );
  const { session } = await at.submit('long work', { agent: 'long' });
  const end = await at.ended(session, 1, 180_000);
  expect(end).toMatchObject({ endDetail: 'max_steps', endStep: STEPS });
  const runs = await runsOf(at, turnWorkflowId(`${session}/1`));
  for (const { events } of runs) expect(events?.length).toBeLessThan(530);
  const steps = bytesOfSteps(runs);
  expect(steps).toHaveLength(STEPS);
  // The step in which a new run takes over carries the state across once; the others are compared one by one.
  const typical = (from: number) =>
    percentile(
      steps
        .slice(from - 8, from + 7)
        .filter(({ hasSwitch }) => !hasSwitch)
        .map(({ bytes }) => bytes),
      50,
    );
  const [at30, at300] = [typical(30), typical(STEPS - 7)];
  const switches = steps.filter(({ hasSwitch }) => hasSwitch).map(({ bytes }) => bytes);
  note('bytes of history a step', { at30, at300, switches, runs: runs.length });
  expect(Math.abs(at300 / at30 - 1)).toBeLessThanOrEqual(0.02);
  // What is carried across does not grow either.
  expect(Math.max(...switches) / Math.min(...switches)).toBeLessThan(1.1);
});

describe('a marker in everything that is a customer’s', () => {
  const folder = `ws-${MARKER}`;
  const notes = `notes-${MARKER}.txt`;
  const calls = [
    { name: 'read_file', arguments: { path: notes } },
    { name: 'write_file', arguments: { path: `made-${MARKER}.txt`, content: `made ${MARKER}` } },
    { name: 'edit_file', arguments: { path: notes, old_string: MARKER, new_string: `${MARKER}!` } },
    { name: 'list_files', arguments: {} },
    { name: 'search_text', arguments: { pattern: MARKER } },
    { name: 'shell', arguments: { command: `echo ${MARKER}; echo ${MARKER} >&2; exit 3` } },
    { name: 'shell', arguments: { command: `yes ${MARKER} | head -c 200000` } },
    { name: 'failing', arguments: { text: MARKER } },
    { name: `tool_${MARKER}`, arguments: { text: MARKER } },
    { name: 'read_file', arguments: `{"${MARKER}": ` },
    { name: 'read_file', arguments: { path: `../${MARKER}`, [MARKER]: MARKER } },
    { name: 'read_file', arguments: { path: `missing-${MARKER}` } },
  ];

  async function succeeds() {
    const steered = hold();
    talk.on(`succeed ${MARKER}`, (request) => {
      if (userTexts(request).length > 1) return say(`Understood, ${MARKER}.`);
      if (request.messages.some(({ role }) => role === 'tool'))
        return paced(say(`It says ${MARKER}.`), { hold: steered, holdAt: 1 });
      return callTools(calls, { text: `Let me see ${MARKER}.`, reasoning: `Hm, ${MARKER}.` });
    });
    const { session } = await at.submit(`succeed ${MARKER}`, { workspace: folder });
    await steered.reached;
    await at.send(session, 'steer', `and ${MARKER}`);
    steered.release();
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    return session;
  }

  async function fails() {
    const body = { error: { message: `bad ${MARKER}`, code: MARKER, type: MARKER, param: MARKER } };
    const answers = [
      chunks([C({ content: MARKER }), { error: { message: MARKER, code: MARKER } }]),
      status(429, body, { 'retry-after': '1', 'x-request-id': MARKER }),
      status(400, body, { 'x-request-id': MARKER }),
    ];
    talk.on(`fail ${MARKER}`, () => answers.shift() ?? status(400, body));
    const { session } = await at.submit(`fail ${MARKER}`);
    expect(await at.ended(session)).toMatchObject({ endReason: 'ERROR', endDetail: 'invalid_request' });
    return session;
  }

  async function isCancelled() {
    talk.on(`cancel ${MARKER}`, () =>
      callTools([{ name: 'shell', arguments: { command: `echo ${MARKER} > started; exec sleep 100` } }]),
    );
    const { session } = await at.submit(`cancel ${MARKER}`);
    const turn = `${session}/1`;
    await until('the command runs', async () => only(await at.events(session), 'call.started').length === 1);
    // Heartbeats are shown by describe only while an activity runs.
    const raw = await until('the command has beaten', async () => {
      const { raw: response } = await turnHandle(at, turn).describe();
      return response.pendingActivities?.some((activity) => activity.heartbeatDetails) ? response : null;
    });
    expect(piecesIn(DescribeWorkflowExecutionResponse.encode(raw).finish(), MARKER)).toEqual([]);
    await cancelTurn(at, turn, `person ${MARKER}`, `because ${MARKER}`);
    expect(await at.ended(session)).toMatchObject({ endReason: 'ABORTED', endWhy: `because ${MARKER}` });
    return session;
  }

  it('is in no history, memo, attribute, heartbeat or failure; the store has it', { timeout: 60_000 }, async () => {
    mkdirSync(join(at.workspaces, folder), { recursive: true });
    writeFileSync(join(at.workspaces, folder, notes), `first line\n${MARKER}\n`);
    const sessions = await Promise.all([succeeds(), fails(), isCancelled()]);
    // Without this the search below could pass on an empty run.
    const rows = await at.house.database.db
      .select()
      .from(call)
      .where(eq(call.turn, `${sessions[0]}/1`))
      .orderBy(asc(call.ordinal));
    expect(rows.map(({ status: how }) => how)).toEqual([
      'ok',
      'ok',
      'ok',
      'ok',
      'ok',
      'error',
      'ok',
      'error',
      'error',
      'error',
      'error',
      'error',
    ]);
    expect(JSON.stringify(await at.transcript(sessions[0]))).toContain(MARKER);

    const histories = await exportHistories(at, 3 * 2 + 1);
    expect(new Set(histories.map(({ type }) => type))).toEqual(
      new Set(['recoveryWorkflow', 'sessionWorkflow', 'turnWorkflow']),
    );
    for (const session of sessions)
      expect(histories.map(({ workflowId }) => workflowId)).toEqual(
        expect.arrayContaining([`session/${session}`, `turn/${session}/1`]),
      );
    const found = histories.flatMap(({ workflowId, history }) =>
      piecesIn(HistoryProto.encode(history).finish(), MARKER).map((piece) => ({ workflowId, piece })),
    );
    expect(found).toEqual([]);
    for (const { workflowId } of histories) {
      const { raw } = await at.house.temporal.workflow.getHandle(workflowId).describe();
      expect(piecesIn(DescribeWorkflowExecutionResponse.encode(raw).finish(), MARKER)).toEqual([]);
    }
    // Events may hold who and why a person said, nothing of the content.
    const events = (await Promise.all(sessions.map((session) => at.events(session)))).flat();
    const told = events.filter(({ event }) => event.kind !== 'turn.ended');
    expect(only(told, 'call.finished').length).toBeGreaterThan(0);
  });

  it('would be found if it were there', () => {
    const payload = { data: Buffer.from(JSON.stringify({ text: `x${MARKER.slice(3, 12)}y` })) };
    const history = { events: [{ workflowExecutionSignaledEventAttributes: { input: { payloads: [payload] } } }] };
    expect(piecesIn(HistoryProto.encode(history).finish(), MARKER)).toHaveLength(4);
  });
});
