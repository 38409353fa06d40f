import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { GateVerdict } from '../../workflows/core/gate.ts';
import type { GateRequest } from '../../workflows/core/requests.ts';
import type { Deps } from '../deps.ts';
import { type Guards, type Judgement, judge } from '../gate/judge.ts';
import { DENIAL_TEXTS } from '../gate/texts.ts';
import { deniedEvent, openApproval, refuseCalls } from '../store/approvals.ts';
import type { Tx } from '../store/database.ts';
import { type NewEvent, recordEvents } from '../store/events.ts';
import { enterRun, lockTurn } from '../store/fence.ts';
import { effectKey, sha256 } from '../store/hash.ts';
import { type CallRow, readCall } from '../store/ledger.ts';
import { ownerOf, type TurnOwner } from '../store/owners.ts';
import { commit } from '../store/schema.ts';
import { findCommit } from '../store/turn-commit.ts';
import type { Tool } from '../tools/define-tool.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { changeArguments } from './change-arguments.ts';
import { answeredRef, refOf } from './call-ref.ts';
import { denialReport } from '../reports/call-report.ts';
import { storeReports } from '../store/reports.ts';
import { findTool } from './find-tool.ts';
import { guardsOf } from './guards.ts';
import { confirmRun, knownRuns } from './runs.ts';

/** Judges one call on its final arguments, once: whoever asks again gets the verdict that was committed. */
export async function gate(deps: Deps, request: GateRequest): Promise<GateVerdict> {
  const { db } = deps.database;
  await enterRun(db, request.fence, knownRuns, confirmRun(deps));
  const owner = await ownerOf(db, request.fence.turn);
  const key = effectKey(request.assistant, request.ordinal);
  const before = await findCommit<GateVerdict>(db, commitKeyOf(key));
  if (before) return before;
  const row = await readCall(db, key);
  if (!row) throw ApplicationFailure.nonRetryable('The call is not in the store.', 'tool.call_missing');
  const found = await findTool(deps, row.call.tool);
  const guards = await guardsOf(deps, owner, Context.current().cancellationSignal);
  const judgement: Judgement = found.ok
    ? await judge({ tool: found.tool, effect: row.call.effect, args: row.call.arguments }, guards)
    : { kind: 'denied', by: 'arguments', text: found.text, failures: [] };
  const verdict = await db.transaction((tx) =>
    keepVerdict(tx, { request, owner, row: row.call, tool: found.ok ? found.tool : null, guards, judgement }),
  );
  deps.notifier.moved(owner.stream);
  deps.reporter.wake();
  return verdict;
}

function commitKeyOf(callKey: string): string {
  return sha256('gate', callKey);
}

interface Judged {
  readonly request: GateRequest;
  readonly owner: TurnOwner;
  readonly row: CallRow;
  readonly tool: Tool | null;
  readonly guards: Guards;
  readonly judgement: Judgement;
}

async function keepVerdict(tx: Tx, judged: Judged): Promise<GateVerdict> {
  const { request, owner, row } = judged;
  await lockTurn(tx, request.fence);
  const before = await findCommit<GateVerdict>(tx, commitKeyOf(row.key));
  if (before) return before;
  const { verdict, events } = await apply(tx, judged);
  await tx
    .insert(commit)
    .values({ key: commitKeyOf(row.key), turn: owner.id, run: request.fence.run, result: verdict });
  await recordEvents(tx, owner.session, [...hookFailures(judged), ...events]);
  return verdict;
}

async function apply(tx: Tx, judged: Judged): Promise<{ verdict: GateVerdict; events: NewEvent[] }> {
  const { owner, row, tool, guards, judgement, request } = judged;
  if (judgement.kind === 'denied' || !tool) {
    const by = judgement.kind === 'denied' ? judgement.by : 'arguments';
    const text = judgement.kind === 'denied' ? judgement.text : DENIAL_TEXTS.mode(row.tool);
    await refuseCalls(tx, [row.key], { status: 'denied', text, note: by });
    const report = denialReport(guards.hooks, { session: owner.session, turn: owner.id, call: row }, by);
    if (report) await storeReports(tx, [report]);
    return { verdict: { kind: 'denied' }, events: [deniedEvent(owner.id, row.key, row.tool, by)] };
  }
  const args = await changeArguments(tx, row, judgement.args);
  if (judgement.kind === 'ask') {
    const { expiryMs, onExpiry } = guards.permissions;
    const asked = { kind: 'permission' as const, ...judgement.summary, arguments: args, onExpiry };
    const opened = await openApproval(tx, { turn: owner.id, call: row.key, asked, expiryMs });
    const verdict = { kind: 'ask', approval: opened.row.id, untilMs: opened.row.expiresAt.getTime() } as const;
    return { verdict, events: [opened.event] };
  }
  const parsed = parseArguments(tool, args);
  const ref = parsed.ok ? refOf(owner, tool, request.ordinal, parsed, 'run') : answeredRef(request.ordinal, tool, '');
  return { verdict: { kind: 'run', ref }, events: [] };
}

function hookFailures({ judgement, owner, row }: Judged): NewEvent[] {
  return judgement.failures.map(({ hook, why }, n) => ({
    key: `hook/${row.key}/${n}`,
    turn: owner.id,
    event: { kind: 'hook.failed', layer: 'batch', hook, why },
  }));
}
