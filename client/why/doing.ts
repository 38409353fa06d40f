import type { BatchCall, TurnState } from '../../workflows/core/turn-state.ts';
import type { PendingActivity, TurnActivity } from '../engine.ts';
import type { Doing } from './report.ts';

/** What an open turn does now, by the engine's word and its own. Null: the engine does not answer. */
export function doingNow(seen: TurnActivity | null): Doing {
  if (!seen) return doing('not_known', 'the engine does not answer, so nobody can say what it does');
  const { engine, state, pending } = seen;
  if (engine !== 'running') return doing('lost', `the engine says ${engine}: recovery writes its end within a minute`);
  const retried = pending.find(({ startedAt, attempt }) => startedAt === null && attempt > 1);
  if (retried) return retries(retried);
  if (state) return ofState(state, pending);
  const running = pending.find(({ startedAt }) => startedAt !== null);
  return running ? works(running, activityWords(running.type, null)) : doing('not_known', 'no worker answers for it');
}

function ofState(state: TurnState, pending: readonly PendingActivity[]): Doing {
  const { phase, step } = state;
  const since = iso(state.atMs);
  switch (phase.kind) {
    case 'resting':
      return rests(phase.untilMs, since, `at step ${step}`, phase.cause);
    case 'compaction_resting':
      return rests(phase.untilMs, since, `at step ${step}`, 'a compaction that failed');
    case 'batch':
      return ofCalls(phase.calls, state, pending);
    case 'carried':
      return ofCalls([phase.call], state, pending);
    case 'ready':
    case 'compacting':
    case 'stop_gate':
    case 'ending':
      return works(pending[0] ?? null, activityWords(pending[0]?.type ?? PHASES[phase.kind], step), since);
  }
}

function rests(untilMs: number, since: string, where: string, after: string): Doing {
  const until = iso(untilMs);
  return { ...doing('rests', `rests ${where} until ${until} after ${after}, then tries again`), since, until };
}

function ofCalls(calls: readonly BatchCall[], { step, atMs }: TurnState, pending: readonly PendingActivity[]): Doing {
  const since = iso(atMs);
  const asking = calls.find((call) => call.state === 'asking');
  if (asking) return waits(asking, since, 'a person to decide on');
  const doubted = calls.find((call) => call.state === 'in_doubt');
  const waiting = calls.find((call) => call.state === 'waiting');
  const running = calls.filter((call) => call.state === 'running');
  if (doubted && running.length === 0)
    return waits(doubted, since, `a person to say what became of ${doubted.ref.tool},`);
  if (waiting && running.length === 0) return waits(waiting, since, waitedFor(waiting));
  return works(pending[0] ?? null, `runs ${toolNames(running)} of step ${step}`, since);
}

function waitedFor({ ref }: BatchCall): string {
  return ref.runs === 'child' ? 'its sub-agent' : `the answer to ${ref.tool},`;
}

const PHASES = { ready: 'sample', compacting: 'compact', stop_gate: 'stopGate', ending: 'endTurn' } as const;

function waits(call: BatchCall, since: string, what: string): Doing {
  if (!('untilMs' in call)) return doing('waits', `waits for ${what}`);
  const until = call.untilMs > 0 ? iso(call.untilMs) : null;
  const words = `waits for ${what} ${call.approval}${until === null ? '' : ` until ${until}`}`;
  return { ...doing('waits', words), since, until };
}

function retries({ type, attempt, failure }: PendingActivity): Doing {
  const after = failure === null ? '' : `, the one before failed with ${failure}`;
  return { ...doing('retries', `waits for attempt ${attempt} of ${activityWords(type, null)}${after}`), attempt };
}

function works(running: PendingActivity | null, what: string, since: string | null = null): Doing {
  const from = running?.startedAt ?? since;
  const attempt = running?.attempt ?? null;
  const again = attempt !== null && attempt > 1 ? `, attempt ${attempt}` : '';
  return { ...doing('works', `${what}${from === null ? '' : ` since ${from}`}${again}`), since: from, attempt };
}

/** What an activity does, for people. */
function activityWords(type: string, step: number | null): string {
  const of = step === null ? '' : ` of step ${step}`;
  switch (type) {
    case 'sample':
      return `the sample${of}`;
    case 'runTool':
      return `a call${of}`;
    case 'gate':
    case 'settleApproval':
      return `the gate${of}`;
    case 'stopGate':
      return `the stop gate${of}`;
    case 'compact':
      return `the compaction${of}`;
    case 'endTurn':
      return 'the end';
    default:
      return `${type}${of}`;
  }
}

function toolNames(calls: readonly BatchCall[]): string {
  const names = calls.map(({ ref }) => ref.tool);
  return names.length > 0 ? names.join(', ') : 'the calls';
}

function doing(kind: Doing['kind'], words: string): Doing {
  return { kind, since: null, until: null, attempt: null, words };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
