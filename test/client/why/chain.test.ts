import { describe, expect, test } from 'vitest';
import { adviceOf } from '../../../client/why/advice.ts';
import { chainOf } from '../../../client/why/chain.ts';
import type { LayerEnds } from '../../../client/why/facts.ts';
import type { JobTurnEnd } from '../../../client/index.ts';
import { END_DETAILS } from '../../../workflows/core/ends.ts';
import { NO_USAGE } from '../../../workflows/core/sample-outcome.ts';

type Ended = Pick<JobTurnEnd, 'reason' | 'detail' | 'decidedBy' | 'signal'>;

const AT = '2026-01-01T00:00:00.000Z';
const endOf = (how: Ended, change: Partial<JobTurnEnd> = {}): JobTurnEnd => ({
  ...how,
  phase: 'ending',
  step: 1,
  usage: NO_USAGE,
  by: null,
  why: null,
  recordedBy: 'turn',
  structuredOutput: null,
  contract: null,
  resumeAt: null,
  at: AT,
  ...change,
});
const NONE: LayerEnds = { stream: null, batch: null, driver: null, goal: null };
const around = { ends: NONE, streams: [], end: null, queue: { waiting: 0 }, doing: null };
const words = (change: Partial<Parameters<typeof chainOf>[0]>) =>
  Object.fromEntries(chainOf({ ...around, ...change }).map((link) => [link.layer, link.words]));

// Every end that there is: what it says, and what is to be done.
const ENDS: readonly (readonly [end: Ended, words: string, now: string])[] = [
  [
    { reason: 'COMPLETED', detail: 'final_answer', decidedBy: 'model', signal: { name: 'model_stop' } },
    'COMPLETED/final_answer: The model gave its final answer. Decided by the model, on model_stop; it was at ending, after 1 tool round.',
    'Nothing: read the answer.',
  ],
  [
    { reason: 'COMPLETED', detail: 'refused', decidedBy: 'model', signal: { name: 'model_refusal' } },
    'COMPLETED/refused: The model, or the filter of its provider, refused to answer. Decided by the model, on model_refusal; it was at ending, after 1 tool round.',
    'Reword the ticket, or give it to an agent with another model.',
  ],
  [
    { reason: 'COMPLETED', detail: 'todo_open', decidedBy: 'runtime', signal: { name: 'model_stop' } },
    'COMPLETED/todo_open: The model stopped with work left on its list, though it was reminded. Decided by the runtime, on model_stop; it was at ending, after 1 tool round.',
    'Read what is left, and hand it in as the next ticket.',
  ],
  [
    { reason: 'BLOCKED', detail: 'awaiting_input', decidedBy: 'model', signal: { name: 'model_report' } },
    'BLOCKED/awaiting_input: The model asked a person, and nobody answered in time. Decided by the model, on model_report; it was at ending, after 1 tool round.',
    'Answer the question; the answer starts the next turn.',
  ],
  [
    { reason: 'BLOCKED', detail: 'external_dependency', decidedBy: 'model', signal: { name: 'model_report' } },
    'BLOCKED/external_dependency: The model waits for something outside that has not happened. Decided by the model, on model_report; it was at ending, after 1 tool round.',
    'See to what it waits for, and tell it; the message starts the next turn.',
  ],
  [
    { reason: 'BLOCKED', detail: 'awaiting_approval', decidedBy: 'runtime', signal: { name: 'approval', id: 'apr_1' } },
    'BLOCKED/awaiting_approval: A call needs a person’s leave, and nobody decided in time. Decided by the runtime, on approval apr_1; it was at ending, after 1 tool round.',
    'Approve or reject the call; the decision starts the next turn.',
  ],
  [
    {
      reason: 'BLOCKED',
      detail: 'no_progress',
      decidedBy: 'runtime',
      signal: { name: 'limit', limit: 'identical_steps', allowed: 8, used: 8 },
    },
    'BLOCKED/no_progress: The model made the same calls again and again. Decided by the runtime, on limit identical_steps: 8 of 8; it was at ending, after 1 tool round.',
    'Look at what it repeats, and tell it what to do differently.',
  ],
  [
    {
      reason: 'MAX_TOKENS',
      detail: 'output_limit',
      decidedBy: 'runtime',
      signal: { name: 'limit', limit: 'output_tokens', allowed: 8192, used: 8192 },
    },
    'MAX_TOKENS/output_limit: The reply was longer than one sample may be; the text so far is kept. Decided by the runtime, on limit output_tokens: 8192 of 8192; it was at ending, after 1 tool round.',
    'Raise outputTokens of the agent, or ask for less at once.',
  ],
  [
    {
      reason: 'MAX_TOKENS',
      detail: 'context_limit',
      decidedBy: 'runtime',
      signal: { name: 'limit', limit: 'context_tokens', allowed: 128000, used: 109000 },
    },
    'MAX_TOKENS/context_limit: The conversation no longer fits into the window of the model. Decided by the runtime, on limit context_tokens: 109000 of 128000; it was at ending, after 1 tool round.',
    'Hand in what is left as a new job, or take a model with a larger window.',
  ],
  [
    { reason: 'ABORTED', detail: 'user_cancel', decidedBy: 'user', signal: { name: 'cancel_request', id: 'can_1' } },
    'ABORTED/user_cancel: Somebody cancelled it. Decided by a user, on cancel_request can_1; it was at ending, after 1 tool round.',
    'Nothing: hand it in again if it is still wanted.',
  ],
  [
    { reason: 'ABORTED', detail: 'permission_rejected', decidedBy: 'user', signal: { name: 'approval', id: 'apr_1' } },
    'ABORTED/permission_rejected: A person rejected a call. Decided by a user, on approval apr_1; it was at ending, after 1 tool round.',
    'Say in a new ticket what may be done instead.',
  ],
  [
    { reason: 'ABORTED', detail: 'permission_cancelled', decidedBy: 'user', signal: { name: 'approval', id: 'apr_1' } },
    'ABORTED/permission_cancelled: A person cancelled when asked about a call. Decided by a user, on approval apr_1; it was at ending, after 1 tool round.',
    'Nothing: hand it in again if it is still wanted.',
  ],
  [
    {
      reason: 'ABORTED',
      detail: 'max_steps',
      decidedBy: 'runtime',
      signal: { name: 'limit', limit: 'steps', allowed: 100, used: 100 },
    },
    'ABORTED/max_steps: It used all the tool rounds that a turn has. Decided by the runtime, on limit steps: 100 of 100; it was at ending, after 1 tool round.',
    'See whether it made progress; then raise maxSteps, or hand in smaller tickets.',
  ],
  [
    {
      reason: 'ABORTED',
      detail: 'budget',
      decidedBy: 'runtime',
      signal: { name: 'limit', limit: 'usd', allowed: 0.5, used: 0.5123 },
    },
    'ABORTED/budget: It used all the tokens or the money that a turn has. Decided by the runtime, on limit usd: 0.5123 of 0.5; it was at ending, after 1 tool round.',
    'See whether it made progress; then raise the budget, or hand in smaller tickets.',
  ],
  [
    {
      reason: 'ABORTED',
      detail: 'deadline',
      decidedBy: 'runtime',
      signal: { name: 'limit', limit: 'running_ms', allowed: 21600000, used: 21600400 },
    },
    'ABORTED/deadline: Its time was over. Decided by the runtime, on limit running_ms: 21600400 of 21600000; it was at ending, after 1 tool round.',
    'See what took so long; then raise maxRunningMs or notAfterMs, or hand in smaller tickets.',
  ],
  [
    { reason: 'ABORTED', detail: 'hook_stop', decidedBy: 'runtime', signal: { name: 'hook', id: 'gate' } },
    'ABORTED/hook_stop: A hook stopped it. Decided by the runtime, on hook gate; it was at ending, after 1 tool round.',
    'Look at what the hook says; it is yours.',
  ],
  [
    {
      reason: 'ABORTED',
      detail: 'scheduler_cancel',
      decidedBy: 'scheduler',
      signal: { name: 'cancel_request', id: 'can_1' },
    },
    'ABORTED/scheduler_cancel: The scheduler cancelled it. Decided by the scheduler, on cancel_request can_1; it was at ending, after 1 tool round.',
    'Nothing: the schedule goes on with its next time.',
  ],
  [
    {
      reason: 'ABORTED',
      detail: 'parent_cancelled',
      decidedBy: 'scheduler',
      signal: { name: 'cancel_request', id: 'can_1' },
    },
    'ABORTED/parent_cancelled: The turn that started it was cancelled. Decided by the scheduler, on cancel_request can_1; it was at ending, after 1 tool round.',
    'Look at the parent.',
  ],
  [
    {
      reason: 'ERROR',
      detail: 'auth',
      decidedBy: 'runtime',
      signal: { name: 'provider_answer', cause: 'auth', status: 401 },
    },
    'ERROR/auth: The provider did not accept the key. Decided by the runtime, on auth, HTTP 401; it was at ending, after 1 tool round.',
    'Put a valid key where the provider’s apiKeyEnv says, restart the workers if it is in their environment, and hand it in again.',
  ],
  [
    {
      reason: 'ERROR',
      detail: 'model',
      decidedBy: 'runtime',
      signal: { name: 'retries_spent', cause: 'empty_reply', used: 2 },
    },
    'ERROR/model: The model gave nothing usable: empty replies, or calls that were cut again and again. Decided by the runtime, on empty_reply after 2 tries; it was at ending, after 1 tool round.',
    'Try again, with a larger outputTokens or another model.',
  ],
  [
    {
      reason: 'ERROR',
      detail: 'provider_unavailable',
      decidedBy: 'runtime',
      signal: { name: 'retries_spent', cause: 'overloaded', used: 15 },
    },
    'ERROR/provider_unavailable: The provider did not answer, through all retries. Decided by the runtime, on overloaded after 15 tries; it was at ending, after 1 tool round.',
    'See whether the provider is up and its quota is left; then hand it in again.',
  ],
  [
    {
      reason: 'ERROR',
      detail: 'invalid_request',
      decidedBy: 'runtime',
      signal: { name: 'provider_answer', cause: 'invalid_request', status: 400 },
    },
    'ERROR/invalid_request: The provider refused the request as such. Decided by the runtime, on invalid_request, HTTP 400; it was at ending, after 1 tool round.',
    'Check the model’s name, the schemas of the tools and the size of the input; the same request will fail again.',
  ],
  [
    {
      reason: 'ERROR',
      detail: 'context_unusable',
      decidedBy: 'runtime',
      signal: { name: 'fault', type: 'context.missing_parent' },
    },
    'ERROR/context_unusable: The conversation cannot be sent to the model any more. Decided by the runtime, on fault context.missing_parent; it was at ending, after 1 tool round.',
    'Rewind the session to an earlier message (`pawl messages <session>` lists them), or hand in what is left as a new job.',
  ],
  [
    { reason: 'ERROR', detail: 'storage', decidedBy: 'runtime', signal: { name: 'fault', type: 'store.refused' } },
    'ERROR/storage: The store refused a write. Decided by the runtime, on fault store.refused; it was at ending, after 1 tool round.',
    'Look at the database and the log of the worker; then hand it in again.',
  ],
  [
    {
      reason: 'ERROR',
      detail: 'tool_infrastructure',
      decidedBy: 'runtime',
      signal: { name: 'fault', type: 'tool.lost' },
    },
    'ERROR/tool_infrastructure: A call could not be run at all: its worker was lost again and again, or failed before the tool. Decided by the runtime, on fault tool.lost; it was at ending, after 1 tool round.',
    'Look at the log of the worker that has the workspace; then hand it in again.',
  ],
  [
    { reason: 'ERROR', detail: 'internal', decidedBy: 'runtime', signal: { name: 'fault', type: 'activity.lost' } },
    'ERROR/internal: A fault of Pawl’s own. Decided by the runtime, on fault activity.lost; it was at ending, after 1 tool round.',
    'Look into the log of the worker for the fault’s type, and report it.',
  ],
  [
    { reason: 'INTERRUPTED', detail: 'terminated', decidedBy: 'user', signal: { name: 'engine', event: 'terminated' } },
    'INTERRUPTED/terminated: Somebody terminated its workflow; there was no time to clean up. Decided by a user, on engine: terminated; it was at ending, after 1 tool round.',
    'See what its last calls did to the world (`pawl approvals` lists those that nobody can tell of); then hand in what is left.',
  ],
  [
    {
      reason: 'INTERRUPTED',
      detail: 'timed_out',
      decidedBy: 'runtime',
      signal: { name: 'engine', event: 'timed_out' },
    },
    'INTERRUPTED/timed_out: The engine closed its workflow for its time. Decided by the runtime, on engine: timed_out; it was at ending, after 1 tool round.',
    'See what its last calls did to the world (`pawl approvals` lists those that nobody can tell of); then hand in what is left.',
  ],
  [
    {
      reason: 'INTERRUPTED',
      detail: 'unknown_outcome',
      decidedBy: 'runtime',
      signal: { name: 'fault', type: 'turn.unknown_outcome' },
    },
    'INTERRUPTED/unknown_outcome: A call may or may not have taken effect, and nobody can say. Decided by the runtime, on fault turn.unknown_outcome; it was at ending, after 1 tool round.',
    'Find out whether it did, and say so: `pawl approvals` lists the call, `pawl outcome` takes the answer. Nothing is repeated before.',
  ],
  [
    {
      reason: 'INTERRUPTED',
      detail: 'workspace_lost',
      decidedBy: 'runtime',
      signal: { name: 'fault', type: 'turn.workspace_lost' },
    },
    'INTERRUPTED/workspace_lost: No worker has the files of its workspace. Decided by the runtime, on fault turn.workspace_lost; it was at ending, after 1 tool round.',
    'Bring back a worker on the machine that has them, or hand it in with another workspace.',
  ],
  [
    { reason: 'INTERRUPTED', detail: 'lost', decidedBy: 'runtime', signal: { name: 'engine', event: 'unknown' } },
    'INTERRUPTED/lost: The engine no longer has its workflow, and it left no end. Decided by the runtime, on engine: unknown; it was at ending, after 1 tool round.',
    'See what its last calls did to the world (`pawl approvals` lists those that nobody can tell of); then hand in what is left.',
  ],
];

describe('each end', () => {
  test.each(ENDS)('$reason/$detail', (end, said, now) => {
    expect(words({ end: endOf(end) })['turn']).toBe(said);
    expect(adviceOf(end).now).toBe(now);
  });

  test('none is left out', () => {
    const all = Object.entries(END_DETAILS).flatMap(([reason, details]) =>
      Object.keys(details).map((detail) => `${reason}/${detail}`),
    );
    expect(ENDS.map(([{ reason, detail }]) => `${reason}/${detail}`)).toEqual(all);
  });
});

const CANCEL: Ended = {
  reason: 'ABORTED',
  detail: 'user_cancel',
  decidedBy: 'user',
  signal: { name: 'cancel_request' },
};

test('an end says who asked and why, where it stood, and whether recovery wrote it', () => {
  const end = endOf(CANCEL, { by: 'ann', why: 'enough', phase: 'tools', step: 3, recordedBy: 'recovery' });
  expect(words({ end })['turn']).toBe(
    'ABORTED/user_cancel: Somebody cancelled it. Decided by a user (ann), who said “enough”, on cancel_request; it was at tools, after 3 tool rounds; recovery wrote it down.',
  );
});

test('a chain reads from the last stream outwards, and no layer’s end is implied by another’s', () => {
  const links = chainOf({
    ...around,
    end: endOf(CANCEL),
    ends: {
      stream: {
        at: AT,
        event: {
          kind: 'stream.ended',
          layer: 'stream',
          step: 2,
          attempt: 'att_1',
          reason: 'error',
          detail: 'overloaded',
          decidedBy: 'runtime',
          signal: 'overloaded',
          failure: 'overloaded',
          note: 'overloaded 529: try later',
          message: null,
          usage: null,
        },
      },
      batch: {
        at: AT,
        event: {
          kind: 'batch.ended',
          layer: 'batch',
          reason: 'fused',
          detail: 'rejected',
          decidedBy: 'user',
          signal: 'approval',
          calls: 2,
        },
      },
      driver: {
        at: AT,
        event: {
          kind: 'driver.ended',
          layer: 'driver',
          reason: 'queue_empty',
          detail: null,
          decidedBy: 'runtime',
          signal: 'queue_empty',
        },
      },
      goal: null,
    },
  });
  expect(links.map(({ layer, words: said }) => `${layer}: ${said}`)).toEqual([
    'stream: step 2 ended error (overloaded 529: try later), decided by the runtime',
    'batch: 2 calls, fused/rejected, decided by a user',
    'turn: ABORTED/user_cancel: Somebody cancelled it. Decided by a user, on cancel_request; it was at ending, after 1 tool round.',
    'driver: queue_empty, decided by the runtime',
    'goal: there is none',
  ]);
  expect(links.map(({ reason, signal }) => [reason, signal])).toEqual([
    ['error', 'overloaded'],
    ['fused', 'approval'],
    ['ABORTED', 'cancel_request'],
    ['queue_empty', 'queue_empty'],
    [null, null],
  ]);
});

test('a layer without an end says how it stands', () => {
  const open = [{ step: 4, openedAt: new Date(AT) }];
  expect(words({ streams: open, queue: { waiting: 2 }, doing: 'the sample of step 4' })).toEqual({
    stream: `step 4 is sampled since ${AT}, and not closed`,
    batch: 'no batch of calls has ended',
    turn: 'the sample of step 4',
    driver: '2 more wait in the queue',
    goal: 'there is none',
  });
  expect(words({})).toMatchObject({ stream: 'nothing was sampled', driver: 'has not come to rest' });
});
