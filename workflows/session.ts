import {
  CancellationScope,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  isCancellation,
  ParentClosePolicy,
  setCurrentDetails,
  setHandler,
  startChild,
  WorkflowIdReusePolicy,
  workflowInfo,
} from '@temporalio/workflow';
import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import type { Activities } from '../activities/index.ts';
import { driver, recovery } from './activities.ts';
import { cancelRequested } from './cancellation.ts';
import { POLICY } from './core/policy.ts';
import { openTurn } from './core/turn-state.ts';
import { forward, look, type SessionArgs, type TurnArgs, turnWorkflowId } from './messages.ts';
import { isHistoryLong } from './history.ts';
import { turnWorkflow } from './turn.ts';

type Next = Awaited<ReturnType<Activities['advanceSession']>>;

const CANCEL_LOOK_EVERY_MS = 2_000;

/**
 * The driver of one conversation: looks at the queue in the store, starts the next turn, passes on what joins
 * a running one. It knows busy and idle, nothing else; when idle it completes, and the next `look` starts it again.
 */
export async function sessionWorkflow(args: SessionArgs): Promise<void> {
  let noticed = false;
  let started: string | null = null;
  // What this run has given to the turn: a look may still name it until the turn has committed it.
  let given: ReadonlySet<string> = new Set();
  setHandler(look, () => {
    noticed = true;
  });
  const toldWithin = (ms: number) => {
    noticed = false;
    return condition(() => noticed, ms);
  };
  try {
    for (;;) {
      noticed = false;
      const next: Next = await driver.advanceSession({ session: args.session, started });
      switch (next.kind) {
        case 'start': {
          const how = await startTurn(args, next);
          if (how !== 'over') started = next.turn.turn;
          given = new Set(how === 'started' ? next.turn.inputs : []);
          setCurrentDetails(`Turn ${next.turn.turn} runs.`);
          // It was given what joins it; a turn that somebody else started is told by the next look.
          if (how === 'started') await condition(() => noticed);
          break;
        }
        case 'running':
          given = new Set([...given, ...(await pass(next, given))]);
          await condition(() => noticed);
          break;
        case 'idle':
          started = null;
          setCurrentDetails('Idle: nothing is queued.');
          if (!(await condition(() => noticed, POLICY.session.idleMs, { summary: 'idle' }))) return;
      }
      // A cancel in this activation would be lost; the next await hears it.
      if (isHistoryLong() && !cancelRequested()) return await continueAsNew<typeof sessionWorkflow>(args);
    }
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => cancelThrough(args, toldWithin));
    return await continueAsNew<typeof sessionWorkflow>(args);
  }
}

/** `over`: the turn was found gone, and its end is in the store now. */
async function startTurn(args: SessionArgs, next: Next & { kind: 'start' }): Promise<'started' | 'adopted' | 'over'> {
  const { turn, agent, tools, workspaceQueue, head, inputs, rules, limits, carried, agents } = next.turn;
  const state = openTurn({ head, inputs, rules, limits, atMs: Date.now(), carried, ...(agents ? { agents } : {}) });
  const turnArgs: TurnArgs = { turn, session: args.session, agent, tools, workspaceQueue, state };
  let how: 'started' | 'adopted' = 'started';
  try {
    await CancellationScope.nonCancellable(() =>
      startChild(turnWorkflow, {
        workflowId: turnWorkflowId(turn),
        args: [turnArgs],
        parentClosePolicy: ParentClosePolicy.ABANDON,
        workflowIdReusePolicy: WorkflowIdReusePolicy.REJECT_DUPLICATE,
        workflowTaskTimeout: '10s',
        searchAttributes: {
          PawlSession: [args.session],
          PawlAgent: [next.turn.agentName],
          ...(next.turn.ticket ? { PawlTicket: [next.turn.ticket] } : {}),
        },
        staticSummary: `turn of session ${args.session}`,
      }),
    );
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
    if ((await recovery.recoverTurn(turn)) === 'stamped') return 'over';
    how = 'adopted';
  }
  if (next.turn.cancelAsked) await ignoringGone(() => getExternalWorkflowHandle(turnWorkflowId(turn)).cancel());
  return how;
}

/** Inputs that join the running turn; returns them. One that comes too late is put back by the turn's end. */
async function pass(
  { turn, forward: ids, urgent = [] }: Next & { kind: 'running' },
  given: ReadonlySet<string>,
): Promise<readonly string[]> {
  const fresh = ids.filter((id) => !given.has(id));
  if (fresh.length === 0) return [];
  const pressing = urgent.filter((id) => !given.has(id));
  await ignoringGone(() => getExternalWorkflowHandle(turnWorkflowId(turn)).signal(forward, fresh, pressing));
  return fresh;
}

/** The engine may not know a turn any more that has just ended. */
async function ignoringGone(tell: () => Promise<void>): Promise<void> {
  try {
    await tell();
  } catch (error) {
    if (isCancellation(error)) throw error;
  }
}

/**
 * A cancelled session means its turn: it is cancelled by id, and waited for, so that the queue can go on. One
 * that has not started yet is started by the next run, which finds the cancel in the store.
 */
async function cancelThrough(args: SessionArgs, toldWithin: (ms: number) => Promise<boolean>): Promise<void> {
  const turn = await driver.cancelTurnOfSession({ session: args.session, run: workflowInfo().runId });
  while (turn !== null && !(await driver.hasEnded(turn))) await toldWithin(CANCEL_LOOK_EVERY_MS);
}
