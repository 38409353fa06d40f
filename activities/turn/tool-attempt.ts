import { Context } from '@temporalio/activity';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { redactLine } from '../model/redact.ts';
import { type Command, type Supervised, supervise } from '../process/supervise.ts';
import { goalText } from '../goal/goal-text.ts';
import type { TurnOwner } from '../store/owners.ts';
import { readBlob } from '../store/blobs.ts';
import { type CallRow, noteGroup, renewLease } from '../store/ledger.ts';
import { insist } from './insist.ts';
import type { Tool, ToolContext, ToolResult } from '../tools/define-tool.ts';

/** A tool that is run for somebody: for a call of the model's, or as a check of a goal. */
export interface RunnableTool {
  readonly deps: Deps;
  readonly owner: Pick<TurnOwner, 'workspacePath' | 'tenant' | 'session'>;
  readonly attempt: string;
  readonly call: Pick<CallRow, 'key'>;
  readonly tool: Tool;
  readonly args: unknown;
  /** Aborted when a newer attempt of the call has begun in this process. */
  readonly superseded: AbortSignal;
}

/** One attempt of one call: what it runs, and what ends it early. */
export interface ToolAttempt extends RunnableTool {
  readonly owner: TurnOwner;
  readonly call: CallRow;
}

/** How an attempt came back: with a result, or without anybody knowing whether it acted. */
export type Attempted =
  | { readonly kind: 'result'; readonly result: ToolResult }
  | { readonly kind: 'threw'; readonly note: string }
  | { readonly kind: 'timed_out' };

export const LEASE_MS = POLICY.lease.holdMs;

/** Runs the tool's `run`, ended by a cancel, by its time limit, or before a lease that can't be renewed is over. */
export async function attemptRun(
  at: RunnableTool,
  details: unknown,
  /** When the lease was asked for, ms since the epoch; null for a call that needs none. */
  leasedAtMs: number | null,
): Promise<Attempted> {
  const expired = AbortSignal.timeout(at.tool.timeLimitMs);
  const lease = leasedAtMs === null ? null : holdLease(at, leasedAtMs);
  const signals = [stopSignal(at), expired, ...(lease ? [lease.signal] : [])];
  const context = toolContext(at, AbortSignal.any(signals), details, lease);
  try {
    const result = await Promise.race([at.tool.run(at.args, context), abandoned(context.signal)]);
    if (result === 'abandoned')
      return expired.aborted ? { kind: 'timed_out' } : { kind: 'threw', note: 'ignored the stop' };
    return expired.aborted && result.aborted ? { kind: 'timed_out' } : { kind: 'result', result };
  } catch (error) {
    return expired.aborted ? { kind: 'timed_out' } : { kind: 'threw', note: noteOf(error) };
  } finally {
    lease?.release();
  }
}

/** A tool that does not heed its signal is waited for a while, and then left to itself: its slot is needed. */
function abandoned(signal: AbortSignal): Promise<'abandoned'> {
  const { killAfterMs, heedMs } = POLICY.tools;
  return new Promise((resolve) => {
    const leave = () => setTimeout(() => resolve('abandoned'), killAfterMs + heedMs).unref();
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
}

/** Aborted by a cancel, by a worker that leaves, and by a newer attempt in this process. */
export function stopSignal({ superseded }: RunnableTool): AbortSignal {
  return AbortSignal.any([Context.current().cancellationSignal, superseded]);
}

export function isStopped({ superseded }: RunnableTool): boolean {
  return superseded.aborted || Context.current().cancellationSignal.aborted;
}

export function toolContext(at: RunnableTool, signal: AbortSignal, details: unknown, lease: Lease | null): ToolContext {
  return {
    workspace: at.owner.workspacePath,
    signal,
    idempotencyKey: at.call.key,
    details,
    spawn: (command) => spawnNoted(at, command, lease !== null),
    resultChars: POLICY.tools.resultChars,
    mayAct: () => !signal.aborted && (lease?.isHeld() ?? true),
    readBlob: (hash) => readBlob(at.deps.database.db, at.owner.tenant, hash),
    goal: () => goalText(at.deps.database.db, at.owner.session),
    maskStream: () => at.deps.masker.stream(),
  };
}

/** The ledger learns of the process before anybody may take the effect over. */
async function spawnNoted(at: RunnableTool, command: Command, leased: boolean): Promise<Supervised> {
  const running = await supervise(command);
  if (leased) await insist(() => noteGroup(at.deps.database.db, at.call.key, at.attempt, running.identity));
  return running;
}

interface Lease {
  readonly signal: AbortSignal;
  isHeld(): boolean;
  release(): void;
}

/** Renews the lease while the attempt runs; aborts it in good time when that fails. */
function holdLease(at: RunnableTool, leasedAtMs: number): Lease {
  const { renewEveryMs, abortMarginMs } = POLICY.lease;
  const lost = new AbortController();
  let heldUntil = leasedAtMs + LEASE_MS;
  const isHeld = () => !lost.signal.aborted && Date.now() <= heldUntil - abortMarginMs;
  const timer = setInterval(
    () => {
      const asked = Date.now();
      renewLease(at.deps.database.db, at.call.key, at.attempt, LEASE_MS).then(
        (mine) => {
          if (mine) heldUntil = asked + LEASE_MS;
          else lost.abort();
        },
        () => {},
      );
      if (!isHeld()) lost.abort();
    },
    Math.min(renewEveryMs, abortMarginMs),
  );
  return { signal: lost.signal, isHeld, release: () => clearInterval(timer) };
}

/** Class, code and first line, redacted: what an operator may see without seeing content. */
export function noteOf(error: unknown): string {
  if (!(error instanceof Error)) return 'error';
  const { code } = error as Error & { code?: unknown };
  const head = typeof code === 'string' ? `${error.constructor.name} ${code}` : error.constructor.name;
  return redactLine(error.message === '' ? head : `${head}: ${error.message}`);
}
