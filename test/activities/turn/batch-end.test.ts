import { expect, test } from 'vitest';
import { batchEnded } from '../../../activities/turn/batch-end.ts';
import type { End } from '../../../workflows/core/ends.ts';
import type { CallStatus } from '../../../workflows/core/tools.ts';

const row = (status: CallStatus | null, note: string | null = null) => ({ tool: 'shell', status, note });
const phase = 'tools' as const;
const DONE: End = {
  reason: 'COMPLETED',
  detail: 'final_answer',
  decidedBy: 'model',
  signal: { name: 'model_stop' },
  phase,
};
const LIMIT: End = {
  reason: 'ABORTED',
  detail: 'max_steps',
  decidedBy: 'runtime',
  signal: { name: 'limit', limit: 'steps', allowed: 1, used: 1 },
  phase,
};
const CANCEL: End = {
  reason: 'ABORTED',
  detail: 'user_cancel',
  decidedBy: 'user',
  signal: { name: 'cancel_request' },
  phase,
};
const KILLED: End = {
  reason: 'INTERRUPTED',
  detail: 'lost',
  decidedBy: 'runtime',
  signal: { name: 'engine', event: 'unknown' },
  phase,
};
const UNANSWERED: End = {
  reason: 'BLOCKED',
  detail: 'awaiting_approval',
  decidedBy: 'runtime',
  signal: { name: 'approval', id: 'a' },
  phase,
};
const REJECTED: End = {
  reason: 'ABORTED',
  detail: 'permission_rejected',
  decidedBy: 'user',
  signal: { name: 'approval', id: 'a' },
  phase,
};

test.each([
  ['the turn goes on', [row('ok'), row('error', 'exit 1')], null, ['all_returned', null, 'runtime', 'all_returned']],
  [
    'a call that a rule denied is data',
    [row('denied', 'rule')],
    null,
    ['all_returned', null, 'runtime', 'all_returned'],
  ],
  [
    'a lost call that is settled has returned',
    [row('unknown')],
    null,
    ['all_returned', null, 'runtime', 'all_returned'],
  ],
  ['a limit comes after the batch', [row('ok')], LIMIT, ['all_returned', null, 'runtime', 'all_returned']],
  ['the end comes after the batch', [row('ok')], DONE, ['all_returned', null, 'runtime', 'all_returned']],
  ['a cancel right after the last result', [row('ok')], CANCEL, ['all_returned', null, 'runtime', 'all_returned']],
  // The asked call was the last: nothing behind it was fused, and still the fuse has blown.
  [
    'a message instead of an answer',
    [row('ok'), row('denied', 'message')],
    null,
    ['fused', 'message', 'user', 'approval'],
  ],
  [
    'a reject',
    [row('denied', 'rejected'), row('fused', 'rejected')],
    REJECTED,
    ['fused', 'rejected', 'user', 'approval'],
  ],
  // The call itself waits on, beyond its turn.
  [
    'nobody answered, and the turn ends on it',
    [row('ok'), row('blocked_on_approval', 'awaiting_approval')],
    UNANSWERED,
    ['fused', 'expired', 'runtime', 'approval'],
  ],
  ['nobody answered', [row('denied', 'expired')], null, ['fused', 'expired', 'runtime', 'approval']],
  [
    'a cancel before a call began',
    [row('ok'), row(null)],
    CANCEL,
    ['cancelled', 'user_cancel', 'user', 'cancel_request'],
  ],
  ['a cancel that stopped a call', [row('stopped')], CANCEL, ['cancelled', 'user_cancel', 'user', 'cancel_request']],
  ['its workflow is gone', [row('unknown'), row(null)], KILLED, ['cancelled', 'lost', 'runtime', 'engine']],
] as const)('%s', (_name, calls, end, [reason, detail, decidedBy, signal]) => {
  expect(batchEnded({ turn: 't', assistant: 'h' }, calls, end)).toEqual({
    key: 'batch/h',
    turn: 't',
    event: { kind: 'batch.ended', layer: 'batch', calls: calls.length, reason, detail, decidedBy, signal },
  });
});
