import type { End } from '../../workflows/core/ends.ts';
import type { EndTurnRequest } from '../../workflows/core/requests.ts';
import type { Message } from '../../workflows/core/transcript.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import type { Deps } from '../deps.ts';
import { structuredOutputOf } from '../answer/structured-output-of.ts';
import { openTodos } from '../context/open-todos.ts';
import { estimateMessage } from '../model/estimate.ts';
import type { Tx } from '../store/database.ts';
import { enterRun, FenceRefused, type FencedTurn, lockTurn, readTurn, sessionEndedBy } from '../store/fence.ts';
import { openerOf } from '../store/inputs.ts';
import { readResults } from '../store/samples.ts';
import { ancestorsAmong, ChainBroken, type Link, loadOwnChain } from '../store/transcript.ts';
import { runningAgents } from '../store/sub-agents.ts';
import { type EndAuthor, HeadMoved, type TurnEnding, writeEnd } from '../store/turn-end.ts';
import { cascade, tellParent } from '../agents/cascade.ts';
import { batchEnded } from './batch-end.ts';
import { continuationText } from './continuation-text.ts';
import { inputMessage } from './input-text.ts';
import { resultMessages } from './results.ts';
import { tellGoal, tellSession } from './tell-session.ts';
import { stopReason } from './stop-gate.ts';
import { confirmRun, knownRuns } from './runs.ts';

const NOBODY: EndAuthor = { by: null, why: null };

/**
 * Writes the one end of a turn. A limit that nobody asked for also cancels the turn's own workflow, so that
 * the engine shows it as Canceled; the stored end stands whatever status follows.
 */
export async function endTurn(deps: Deps, request: EndTurnRequest): Promise<void> {
  const { fence, end } = request;
  const workflowId = turnWorkflowId(fence.turn);
  await enterRun(deps.database.db, fence, knownRuns, confirmRun(deps));
  const byCancel = end.signal.name === 'cancel_request';
  const session = await writeOnce(deps, request, async () =>
    byCancel
      ? { by: await deps.engine.cancelAuthor(workflowId, fence.run), why: null }
      : await authorOfHook(deps, request),
  );
  if (end.reason === 'ABORTED' && !byCancel) await deps.engine.requestCancel(workflowId);
  await tellOfEnd(deps, session);
}

/** The session itself, sub-agents that ended with the turn, and whoever waits for this one. */
export async function tellOfEnd(deps: Deps, session: string): Promise<void> {
  await tellSession(deps, session);
  await cascade(deps, session);
  await tellParent(deps, session);
}

/** A hook that wanted the end is named with what it said. */
async function authorOfHook({ database }: Deps, { fence, end }: EndTurnRequest): Promise<EndAuthor> {
  if (end.signal.name !== 'hook') return NOBODY;
  return { by: end.signal.id, why: await stopReason(database.db, fence.turn) };
}

/** Returns the session. An end that this very run has written already, its answer lost on the way, stands. */
async function writeOnce(deps: Deps, request: EndTurnRequest, authorOf: () => Promise<EndAuthor>): Promise<string> {
  const { fence } = request;
  const { db } = deps.database;
  try {
    const owner = await readTurn(db, fence);
    const structuredOutput = await structuredOutputOf(deps, fence.turn, request.answer);
    const facts = { ...request, structuredOutput, author: await authorOf(), recordedBy: 'turn' } as const;
    await writeTurnEnd(deps, owner, facts, (tx) => lockTurn(tx, fence));
    return owner.session;
  } catch (error) {
    const session = error instanceof FenceRefused ? await sessionEndedBy(db, fence) : null;
    if (session === null) throw error;
    return session;
  }
}

export type EndFacts = Pick<
  TurnEnding,
  'end' | 'step' | 'runningMs' | 'author' | 'recordedBy' | 'structuredOutput' | 'contract'
>;

/** The end transaction with everything the transcript is still owed; shared by the turn and by recovery. */
export async function writeTurnEnd(
  deps: Deps,
  owner: Pick<FencedTurn, 'id' | 'head' | 'stream' | 'tenant' | 'session'>,
  facts: EndFacts,
  lock: (tx: Tx) => Promise<FencedTurn>,
): Promise<void> {
  const { db } = deps.database;
  const directive = await continuationText(db, owner.id, facts.end);
  let { head } = owner;
  for (;;) {
    const chain = await chainIfWhole(deps, owner, head);
    const { owed, batchEnd } = chain ? await owedAtEnd(deps, owner.id, chain, facts.end) : NOTHING_OWED;
    try {
      const end = await withTodos(deps, owner.session, facts.end, chain ?? []);
      const lastText = lastTextIn(chain ?? []);
      const ending = { ...facts, end, chain: chain ?? [], owed, batchEnd, directive, lastText };
      const { goal } = await writeEnd(db, { ...ending, tokensOf: estimateMessage, reports: deps.hooks.has }, lock);
      deps.notifier.moved(owner.stream);
      deps.reporter.wake();
      if (goal !== null) await tellGoal(deps, goal);
      return;
    } catch (error) {
      if (!(error instanceof HeadMoved)) throw error;
      head = error.head;
    }
  }
}

const NOTHING_OWED = { owed: [], batchEnd: null } as const;

/** Null: it has a hole. Such a turn ends all the same. */
async function chainIfWhole(
  { database, chains }: Deps,
  owner: Pick<FencedTurn, 'tenant' | 'session'>,
  head: string,
): Promise<readonly Link[] | null> {
  try {
    return await loadOwnChain(database.db, chains, owner, head);
  } catch (error) {
    if (error instanceof ChainBroken) return null;
    throw error;
  }
}

function lastTextIn(chain: readonly Link[]): string | null {
  const last = chain.findLast(({ body }) => body.kind === 'assistant' && body.text.trim() !== '');
  return last ? last.body.text : null;
}

/** What was left undone: the workflow knows only how much. */
async function withTodos({ database }: Deps, session: string, end: End, chain: readonly Link[]): Promise<End> {
  if (end.signal.name !== 'open_todos') return end;
  const agents = await runningAgents(database.db, session);
  const items = openTodos(
    chain.map(({ body }) => body),
    agents,
  );
  return { ...end, signal: { ...end.signal, items } };
}

/** Results of the last calls that are not on the chain yet, and a marker where something was cut. */
async function owedAtEnd(
  deps: Deps,
  turn: string,
  chain: readonly Link[],
  end: End,
): Promise<Pick<TurnEnding, 'owed' | 'batchEnd'>> {
  const at = chain.findLastIndex(({ body }) => body.kind === 'assistant');
  const last = chain[at];
  const calls = last?.body.kind === 'assistant' ? last.body.calls.length : 0;
  const answered = chain.slice(at + 1).filter(({ body }) => body.kind === 'tool_result').length;
  const after = [...(await openerOwed(deps, turn, chain, end)), ...marker(turn, end)];
  if (!last || calls <= answered) return { owed: after, batchEnd: null };
  const rows = await readResults(deps.database.db, last.hash);
  return {
    owed: [...resultMessages(rows).slice(answered), ...after],
    batchEnd: batchEnded({ turn, assistant: last.hash }, rows, end),
  };
}

/**
 * What the turn was opened with, where no sample has told it yet: a call that it began with may have acted, and after
 * an interruption the work goes on from here.
 */
async function openerOwed(
  { database }: Deps,
  turn: string,
  chain: readonly Link[],
  { reason }: End,
): Promise<Message[]> {
  const opener = await openerOf(database.db, turn, reason === 'INTERRUPTED' ? 'any' : 'late_yes');
  if (!opener || chain.some(({ body }) => body.kind === 'user' && body.input === opener.id)) return [];
  // Behind a summary the chain that was read does not show it.
  const head = chain[chain.length - 1]?.hash;
  const { message } = opener;
  if (head && message && (await ancestorsAmong(database.db, head, [message])).has(message)) return [];
  return [inputMessage(opener)];
}

function marker(turn: string, end: End): Message[] {
  const cut = end.reason === 'INTERRUPTED' || end.signal.name === 'cancel_request';
  return cut ? [{ kind: 'interruption', turn, text: `${MARKERS[end.reason] ?? ''} ${CHECK_FIRST}` }] : [];
}

const MARKERS: Partial<Record<End['reason'], string>> = {
  ABORTED: 'The work was stopped here on request.',
  INTERRUPTED: 'The work was interrupted here by a failure of the system.',
};

const CHECK_FIRST =
  'The last text may be cut short, and a call without a clear result may have taken effect in part: check before you repeat it.';
