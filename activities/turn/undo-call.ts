import { Context } from '@temporalio/activity';
import type { UndoRequest } from '../../workflows/core/requests.ts';
import type { Deps } from '../deps.ts';
import { settleAnew } from '../recovery/settle-turn.ts';
import { enterRun } from '../store/fence.ts';
import { effectKey } from '../store/hash.ts';
import { newId } from '../store/ids.ts';
import { type EffectRow, readCall } from '../store/ledger.ts';
import { ownerOf } from '../store/owners.ts';
import type { UndoState } from '../store/schema.ts';
import { finishUndo, markCut, startUndo } from '../store/undo.ts';
import type { Undo } from '../tools/define-tool.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { giveUpUnlessCancelled } from './call-outcome.ts';
import { findTool } from './find-tool.ts';
import { insist } from './insist.ts';
import { awaitDeath } from './prove-dead.ts';
import { confirmRun, knownRuns } from './runs.ts';
import { noteOf, type ToolAttempt, toolContext } from './tool-attempt.ts';

/**
 * Takes back one call that a cancel cut in the middle: where the other side says that it happened, or where nobody
 * knows and its tool declares that safe. What became of it is in the ledger; the turn ends whatever that is.
 */
export async function undoCall(deps: Deps, request: UndoRequest): Promise<UndoState | 'nothing'> {
  const { db } = deps.database;
  const signal = AbortSignal.any([AbortSignal.timeout(leftMs(request.forMs)), Context.current().cancellationSignal]);
  await enterRun(db, request.fence, knownRuns, confirmRun(deps));
  const found = await prepare(deps, request);
  if (!found) return 'nothing';
  const { at, undo } = found;
  const row = await settled(at, found.row);
  if (!mayUndo(row, undo) || signal.aborted) return row.undo ?? 'nothing';
  const { attempt, call, owner } = at;
  const mayRepeat = undo.effect === 'idempotent';
  const stands = await startUndo(db, { fence: request.fence, key: call.key, attempt, mayRepeat });
  if (stands !== 'started') return stands;
  const { as, note } = await run(at, undo, row, signal);
  // A worker that leaves tells nothing: the next attempt decides.
  if (as === 'unknown' && leftMs(request.forMs) > 0) giveUpUnlessCancelled();
  const kept = note === null ? null : deps.masker.text(note);
  await insist(() => finishUndo(db, { key: call.key, session: owner.session, attempt }, as, kept));
  deps.notifier.moved(owner.stream);
  return as;
}

/** Counted from when the turn asked for it, whichever attempt this is. */
function leftMs(forMs: number): number {
  return Math.max(0, Context.current().info.scheduledTimestampMs + forMs - Date.now());
}

interface Undoing {
  readonly at: ToolAttempt;
  readonly undo: Undo<unknown>;
  readonly row: EffectRow;
}

async function prepare(deps: Deps, { fence, assistant, ordinal }: UndoRequest): Promise<Undoing | null> {
  const { db } = deps.database;
  const stored = await readCall(db, effectKey(assistant, ordinal));
  if (!stored?.effect) return null;
  const found = await findTool(deps, stored.call.tool);
  if (!found.ok || !found.tool.undo) return null;
  const parsed = parseArguments(found.tool, stored.call.arguments);
  if (!parsed.ok) return null;
  const at: ToolAttempt = {
    deps,
    owner: await ownerOf(db, fence.turn),
    attempt: newId('att'),
    call: stored.call,
    tool: found.tool,
    args: parsed.args,
    superseded: new AbortController().signal,
  };
  return { at, undo: found.tool.undo, row: stored.effect };
}

/** What is not settled is asked for once more, when whoever made the call can't act any more. */
async function settled(at: ToolAttempt, row: EffectRow): Promise<EffectRow> {
  if (row.state !== 'started' && row.state !== 'unknown') return row;
  await markCut(at.deps.database.db, row.key);
  if (row.state === 'started') await awaitDeath(at, row);
  await settleAnew(at.deps, at.owner, row, 'reconcile');
  return (await readCall(at.deps.database.db, row.key))?.effect ?? row;
}

/** What came back as it should is no business of a cancel, also if it had been settled before. */
function mayUndo({ state, cutAt }: EffectRow, undo: Undo<unknown>): boolean {
  if (state === 'settled_done') return cutAt !== null;
  return state === 'unknown' && undo.onUnknown === 'run';
}

interface Undone {
  readonly as: 'undone' | 'failed' | 'unknown';
  readonly note: string | null;
}

async function run(at: ToolAttempt, undo: Undo<unknown>, row: EffectRow, signal: AbortSignal): Promise<Undone> {
  const late = new Promise<Undone>((resolve) => {
    const leave = () => resolve({ as: 'unknown', note: 'timeout' });
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
  });
  const work = undo.run(at.args, toolContext(at, signal, row.details, null));
  try {
    return await Promise.race([work.then((): Undone => ({ as: 'undone', note: null })), late]);
  } catch (error) {
    return { as: 'failed', note: noteOf(error) };
  }
}
