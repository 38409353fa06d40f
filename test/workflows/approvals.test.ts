import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRuns, type OpenApproval, type Runs } from '../../client/index.ts';
import { callTools, type ChatRequest, countToolResults, type Reply, say } from '../../testing/index.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import type { RunningWorker } from '../../worker/start-worker.ts';
import { until } from '../support/until.ts';

let at: TestHouse;
let runs: Runs;
let worker: RunningWorker;

/** Three writes, the first a reader: c0 reads, c1 to c3 ask. */
function rules(request: ChatRequest): Reply {
  if (countToolResults(request) > 0) return say('Done.');
  return callTools([
    { name: 'list_files', arguments: { path: '.' } },
    ...['one', 'two', 'three'].map((name) => ({
      name: 'write_file',
      arguments: { path: `${name}.txt`, content: `${name}\n` },
    })),
  ]);
}

beforeAll(async () => {
  at = await testHouse({
    rules,
    worker: false,
    agent: { attended: true, permissions: { mode: 'default' } },
  });
  runs = createRuns(at.house);
  worker = await at.startWorker();
});
afterAll(async () => {
  await at.close();
});

async function asked(session: string): Promise<OpenApproval> {
  return await until('an approval', async () =>
    (await runs.approvals('default')).find((each) => each.session === session),
  );
}

async function approve(session: string): Promise<void> {
  const { id } = await asked(session);
  expect(await runs.answer('default', id, { answer: 'approved', by: 'pat' })).toEqual({ kind: 'recorded' });
  await until('the next question', async () => !(await runs.approvals('default')).some((each) => each.id === id));
}

async function begin(name: string): Promise<{ session: string; file: (of: string) => string }> {
  mkdirSync(join(at.workspaces, name), { recursive: true });
  writeFileSync(join(at.workspaces, name, 'seed.txt'), 'seed');
  const { session } = await at.submit(`write for ${name}`, { workspace: name });
  return { session, file: (of) => join(at.workspaces, name, `${of}.txt`) };
}

async function results(session: string): Promise<string[]> {
  const messages = await at.transcript(session);
  return messages.flatMap((message) => (message.kind === 'tool_result' ? [message.text.split('\n')[0] ?? ''] : []));
}

it('asks one after the other in call order, runs nothing before all are answered, and then all that is approved', async () => {
  const { session, file } = await begin('all');
  await approve(session);
  await approve(session);
  expect(existsSync(file('one'))).toBe(false);
  await approve(session);
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(['one', 'two', 'three'].map((name) => readFileSync(file(name), 'utf8'))).toEqual([
    'one\n',
    'two\n',
    'three\n',
  ]);
  const kinds = (await at.events(session)).map(({ event }) => event.kind);
  expect(kinds.filter((kind) => kind === 'approval.opened' || kind === 'approval.answered')).toEqual([
    'approval.opened',
    'approval.answered',
    'approval.opened',
    'approval.answered',
    'approval.opened',
    'approval.answered',
  ]);
});

// The fuse: a person's no stops what comes after it, and what was approved before it still runs.
it('a rejection ends the turn: what was approved before it runs, the rest is told why it did not', async () => {
  const { session, file } = await begin('fuse');
  await approve(session);
  const { id } = await asked(session);
  await runs.answer('default', id, { answer: 'rejected', by: 'pat' });
  expect(await at.ended(session)).toMatchObject({
    endReason: 'ABORTED',
    endDetail: 'permission_rejected',
    endDecidedBy: 'user',
    endSignal: { name: 'approval', id },
  });
  expect([existsSync(file('one')), existsSync(file('two')), existsSync(file('three'))]).toEqual([true, false, false]);
  expect((await results(session)).slice(2)).toEqual([
    'A person rejected this call. It did not run.',
    'Not started: a person rejected an earlier call of this batch.',
  ]);
});

it('a message instead of an answer stops the batch, becomes a user message, and the turn goes on', async () => {
  const { session, file } = await begin('message');
  const { id } = await asked(session);
  await runs.answer('default', id, { answer: 'message', by: 'pat', text: 'Write nothing at all.' });
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(existsSync(file('one'))).toBe(false);
  const kinds = (await at.transcript(session)).map((message) => message.kind);
  expect(kinds).toEqual([
    'user',
    'assistant',
    'tool_result',
    'tool_result',
    'tool_result',
    'tool_result',
    'user',
    'assistant',
  ]);
});

it('twenty answers at once: one is recorded, the others are told what it was', async () => {
  const { session } = await begin('race');
  const { id } = await asked(session);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) =>
      runs.answer('default', id, { answer: n % 2 ? 'approved' : 'rejected', by: `p${n}` }),
    ),
  );
  expect(answers.filter((each) => each?.kind === 'recorded')).toHaveLength(1);
  const told = answers.flatMap((each) => (each?.kind === 'answered_before' ? [`${each.answer} ${each.by}`] : []));
  expect(told).toHaveLength(19);
  expect(new Set(told).size).toBe(1);
  await runs.cancel('default', (await jobOf(session)) ?? '', { by: 'pat' });
  await at.ended(session);
});

it('after a cancel an answer is stale, and the call never runs', async () => {
  const { session, file } = await begin('stale');
  const { id } = await asked(session);
  await runs.cancel('default', (await jobOf(session)) ?? '', { by: 'pat' });
  expect(await at.ended(session)).toMatchObject({ endReason: 'ABORTED', endPhase: 'gate' });
  expect(await runs.answer('default', id, { answer: 'approved', by: 'pat' })).toEqual({
    kind: 'stale',
    why: 'turn_ended',
  });
  expect(existsSync(file('one'))).toBe(false);
});

it('edited arguments are what runs, and are validated again', async () => {
  const { session, file } = await begin('edited');
  const { id } = await asked(session);
  const editedArguments = JSON.stringify({ path: 'one.txt', content: 'edited\n' });
  await runs.answer('default', id, { answer: 'approved', by: 'pat', editedArguments });
  const bad = await until('the second', async () =>
    (await runs.approvals('default')).find((each) => each.session === session && each.id !== id),
  );
  await runs.answer('default', bad.id, { answer: 'approved', by: 'pat', editedArguments: '{"path": 7}' });
  await until('the third', async () =>
    (await runs.approvals('default')).some((each) => each.session === session && each.id !== bad.id),
  );
  await approve(session);
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(readFileSync(file('one'), 'utf8')).toBe('edited\n');
  expect([existsSync(file('two')), existsSync(file('three'))]).toEqual([false, true]);
});

it('an approval outlives its worker: answered while none runs, it is carried out by the next', async () => {
  const { session, file } = await begin('restart');
  const { id } = await asked(session);
  await worker.stop();
  const answered = runs.answer('default', id, { answer: 'rejected', by: 'pat' });
  worker = await at.startWorker();
  await answered;
  expect(await at.ended(session)).toMatchObject({ endReason: 'ABORTED', endDetail: 'permission_rejected' });
  expect(existsSync(file('one'))).toBe(false);
});

async function jobOf(session: string): Promise<string | undefined> {
  return (await runs.list('default', { limit: 100 })).jobs.find((job) => job.session === session)?.id;
}
