import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { POLICY } from '../../workflows/core/policy.ts';
import type { RunIdentity, RunToolRequest } from '../../workflows/core/requests.ts';
import type { CallStatus, OutcomeAsked } from '../../workflows/core/tools.ts';
import type { Deps } from '../deps.ts';
import { beating, isCancelRequested, lostSoFar } from '../heartbeat.ts';
import { settleAnew } from '../recovery/settle-turn.ts';
import { enterRun } from '../store/fence.ts';
import { effectKey, sha256, storable } from '../store/hash.ts';
import { ownerOf, type TurnOwner } from '../store/owners.ts';
import { newId } from '../store/ids.ts';
import { type CallClosing, type CallRow, type EffectRow, finishCall, readCall } from '../store/ledger.ts';
import { closeQuestions } from '../store/outcomes.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { runActing } from './acting.ts';
import { hear } from './answered-outcome.ts';
import { type CallOutcome, failed, giveUpUnlessCancelled, returned } from './call-outcome.ts';
import { callReport } from '../reports/call-report.ts';
import { insist } from './insist.ts';
import { CUT_TEXTS } from './results.ts';
import { findTool } from './find-tool.ts';
import { awaitDeath } from './prove-dead.ts';
import { reopenCall } from './reopen-call.ts';
import { confirmRun, knownRuns } from './runs.ts';
import { attemptRun, isStopped, type ToolAttempt } from './tool-attempt.ts';

const NOTE_CHARS = 200;

/**
 * Makes one call. Its result goes to the store; the workflow learns only how it came back, or that a person is
 * asked what became of it: then it is called again with their answer in the store.
 */
export async function runTool(deps: Deps, request: RunToolRequest): Promise<CallStatus | OutcomeAsked> {
  const attempt = newId('att');
  const key = effectKey(request.assistant, request.ordinal);
  return await beating(attempt, () =>
    afterEarlier(key, (superseded) => attemptCall(deps, request, key, { attempt, superseded })),
  );
}

/** Attempts of this process that have not told their outcome yet. */
const inFlight = new Map<string, { readonly over: Promise<unknown>; stop(): void }>();

/** One at a time: the engine may hand out a call again while an earlier attempt still lives here; that one goes first. */
async function afterEarlier<T>(key: string, work: (superseded: AbortSignal) => Promise<T>): Promise<T> {
  for (let earlier = inFlight.get(key); earlier; earlier = inFlight.get(key)) {
    earlier.stop();
    await earlier.over;
  }
  const newer = new AbortController();
  const done = work(newer.signal);
  const over = done.catch(() => {}).then(() => void inFlight.delete(key));
  inFlight.set(key, { over, stop: () => newer.abort() });
  return await done;
}

async function attemptCall(
  deps: Deps,
  request: RunToolRequest,
  key: string,
  mine: Pick<ToolAttempt, 'attempt' | 'superseded'>,
): Promise<CallStatus | OutcomeAsked> {
  const { db } = deps.database;
  await enterRun(db, request.fence, knownRuns, confirmRun(deps));
  const owner = await ownerOf(db, request.fence.turn);
  const row = rememberedCall(deps, key) ?? (await callToMake(deps, owner, request.fence, key));
  if (row.call.status) {
    if (row.effect) await closeQuestions(db, key);
    return row.call.status;
  }
  if (request.purpose === 'settle') return await store(deps, owner, row.call, STOPPED, null);
  const found = await findTool(deps, row.call.tool);
  const parsed = found.ok ? parseArguments(found.tool, row.call.arguments) : found;
  if (!found.ok || !('args' in parsed)) return await refuse(deps, owner, row, 'text' in parsed ? parsed.text : '');
  const at: ToolAttempt = { ...mine, deps, owner, call: row.call, tool: found.tool, args: parsed.args };
  if (lostSoFar() >= POLICY.lostAttempts.ofOneCall) return await giveUp(at, row.effect);
  const outcome = row.effect ? await runActing(at, request.fence, row.effect) : await runReader(at);
  return outcome === 'denied' || 'approval' in outcome ? outcome : await keep(at, outcome);
}

/**
 * Its workers were lost again and again: it is not made any more. What the last of them did is found out first, as far
 * as anybody can tell; where that is a result, the turn goes on with it.
 */
async function giveUp(at: ToolAttempt, effect: EffectRow | null): Promise<CallStatus> {
  const { ofOneCall, whileSettling } = POLICY.lostAttempts;
  const mayAsk = effect !== null && effect.state !== 'intended' && lostSoFar() < ofOneCall + whileSettling;
  const status = mayAsk ? await settledStatus(at, effect) : null;
  if (status === 'ok' || status === 'error') return status;
  throw ApplicationFailure.nonRetryable('Too many attempts of one call were lost.', 'tool.attempts_lost');
}

async function settledStatus(at: ToolAttempt, effect: EffectRow): Promise<CallStatus | null> {
  await awaitDeath(at, effect);
  await settleAnew(at.deps, at.owner, effect, 'reconcile');
  return (await storedCall(at.deps, effect.key)).call.status;
}

/** As it is to be made: one of an earlier turn was allowed since, and is opened again first. */
async function callToMake(deps: Deps, owner: TurnOwner, fence: RunIdentity, key: string): Promise<StoredCall> {
  const row = await storedCall(deps, key);
  const { status, turn } = row.call;
  if (turn === owner.id || (status !== null && status !== 'blocked_on_approval')) return row;
  await reopenCall(deps, owner, fence, row);
  return await storedCall(deps, key);
}

interface StoredCall {
  readonly call: CallRow;
  readonly effect: EffectRow | null;
}

async function storedCall(deps: Deps, key: string): Promise<StoredCall> {
  const row = await readCall(deps.database.db, key);
  if (!row) throw ApplicationFailure.nonRetryable('The call is not in the store.', 'tool.call_missing');
  return row;
}

/** A first attempt may take what this process stored itself; any later one looks into the store. */
function rememberedCall(deps: Deps, key: string): StoredCall | null {
  const call = deps.calls.take(key);
  return call && Context.current().info.attempt === 1 ? { call, effect: null } : null;
}

/** The tool went, or changed, between the reply and the call: fail closed. */
async function refuse(
  deps: Deps,
  owner: ToolAttempt['owner'],
  row: { call: ToolAttempt['call']; effect: EffectRow | null },
  text: string,
): Promise<CallStatus | OutcomeAsked> {
  // What a person was asked about needs no tool to be answered; to send it again would.
  const heard =
    row.effect?.state === 'unknown' ? await hear({ deps, owner, call: row.call }, row.effect.attempt) : null;
  if (heard && heard !== 'again') {
    if (heard.kind === 'asked') return heard.asked;
    return await store(deps, owner, row.call, heard.outcome, heard.outcome.heldBy ?? null);
  }
  const begun = row.effect !== null && row.effect.state !== 'intended';
  const outcome: CallOutcome = {
    status: begun ? 'unknown' : 'error',
    result: { isError: true, text: begun ? CUT_TEXTS.unknown : text, note: 'tool_gone' },
    effect: row.effect ? (begun ? 'unknown' : 'failed') : null,
  };
  return await store(deps, owner, row.call, outcome, null);
}

async function runReader(at: ToolAttempt): Promise<CallOutcome> {
  const attempted = await attemptRun(at, null, null);
  const stopped = isStopped(at);
  switch (attempted.kind) {
    case 'result':
      if (!(stopped && attempted.result.aborted)) return returned(attempted.result, null);
      break;
    case 'threw':
      if (!stopped) return returned(failed('The tool failed.', attempted.note), null);
      break;
    case 'timed_out':
      return returned(failed(`The tool did not finish within ${at.tool.timeLimitMs / 1_000} s.`, 'timeout'), null);
  }
  giveUpUnlessCancelled(at.superseded);
  return STOPPED;
}

/** A reader that was cut, or a message was there before it began. */
const STOPPED: CallOutcome = { status: 'stopped', result: failed(CUT_TEXTS.stopped, 'cancelled'), effect: null };

async function keep(at: ToolAttempt, outcome: CallOutcome): Promise<CallStatus> {
  return await store(at.deps, at.owner, at.call, outcome, outcome.heldBy ?? at.attempt);
}

async function store(
  deps: Deps,
  owner: ToolAttempt['owner'],
  call: ToolAttempt['call'],
  { status, result, effect, events = [] }: CallOutcome,
  attempt: string | null,
): Promise<CallStatus> {
  const output = result.output ? deps.masker.bytes(result.output) : null;
  const closing: CallClosing = {
    turn: owner.id,
    session: owner.session,
    tenant: owner.tenant,
    key: call.key,
    tool: call.tool,
    status,
    text: deps.masker.text(result.text),
    output: output && { hash: sha256(owner.tenant, output), data: output },
    note: result.note === undefined ? null : deps.masker.text(result.note).slice(0, NOTE_CHARS),
    effect: effect === null ? null : { state: effect, attempt, isCut: isCancelRequested() },
    events,
    report: callReport(deps.hooks, { session: owner.session, turn: owner.id, call, status }),
  };
  const kept = await insist(() => finishCall(deps.database.db, closing));
  if (kept.isFirst) {
    const { text, note } = closing;
    deps.calls.finished({ ...call, status, result: storable(text), blob: closing.output?.hash ?? null, note });
  }
  deps.notifier.moved(owner.stream);
  deps.reporter.wake();
  return kept.status;
}
