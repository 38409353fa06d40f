import { Context } from '@temporalio/activity';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { type Command, type Supervised, supervise } from '../process/supervise.ts';
import type { TurnOwner } from '../store/owners.ts';
import { type CallRow, noteGroup, renewLease } from '../store/ledger.ts';
import type { Tool, ToolContext, ToolResult } from '../tools/define-tool.ts';

/** One attempt of one call: what it runs, and what ends it early. */
export interface ToolAttempt {
  readonly deps: Deps;
  readonly owner: TurnOwner;
  readonly attempt: string;
  readonly call: CallRow;
  readonly tool: Tool;
  readonly args: unknown;
}

/** How an attempt came back: with a result, or without anybody knowing whether it acted. */
export type Attempted =
  | { readonly kind: 'result'; readonly result: ToolResult }
  | { readonly kind: 'threw'; readonly note: string }
  | { readonly kind: 'timed_out' };

export const LEASE_MS = POLICY.lease.holdMs;

/** Runs the tool's `run`, ended by a cancel, by its time limit, or before a lease that can't be renewed is over. */
export async function attemptRun(at: ToolAttempt, details: unknown, leased: boolean): Promise<Attempted> {
  const expired = AbortSignal.timeout(at.tool.timeLimitMs);
  const lease = leased ? holdLease(at) : null;
  const signals = [Context.current().cancellationSignal, expired, ...(lease ? [lease.signal] : [])];
  const context = toolContext(at, AbortSignal.any(signals), details, leased);
  try {
    const result = await at.tool.run(at.args, context);
    return expired.aborted && result.aborted ? { kind: 'timed_out' } : { kind: 'result', result };
  } catch (error) {
    return expired.aborted ? { kind: 'timed_out' } : { kind: 'threw', note: noteOf(error) };
  } finally {
    lease?.release();
  }
}

export function toolContext(at: ToolAttempt, signal: AbortSignal, details: unknown, leased: boolean): ToolContext {
  return {
    workspace: at.owner.workspacePath,
    signal,
    idempotencyKey: at.call.key,
    details,
    spawn: (command) => spawnNoted(at, command, leased),
    resultChars: POLICY.tools.resultChars,
  };
}

/** The ledger learns of the process before anybody may take the effect over. */
async function spawnNoted(at: ToolAttempt, command: Command, leased: boolean): Promise<Supervised> {
  const running = await supervise(command);
  if (leased) await noteGroup(at.deps.database.db, at.call.key, at.attempt, running.identity);
  return running;
}

/** Renews the lease while the attempt runs; aborts it in good time when that fails. */
function holdLease(at: ToolAttempt): { readonly signal: AbortSignal; release(): void } {
  const { renewEveryMs, abortMarginMs } = POLICY.lease;
  const lost = new AbortController();
  let heldUntil = Date.now() + LEASE_MS;
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
      if (Date.now() > heldUntil - abortMarginMs) lost.abort();
    },
    Math.min(renewEveryMs, abortMarginMs),
  );
  return { signal: lost.signal, release: () => clearInterval(timer) };
}

function noteOf(error: unknown): string {
  if (!(error instanceof Error)) return 'error';
  const { code } = error as Error & { code?: unknown };
  return (typeof code === 'string' ? `${error.constructor.name} ${code}` : error.constructor.name).slice(0, 200);
}
