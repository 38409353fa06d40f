import {
  allHandlersFinished,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { cancelHeard } from './cancellation.ts';
import { answerTo, refusalOf } from './core/goal/commands.ts';
import { applyGoal } from './core/goal/goal-apply.ts';
import type { GoalCommand, GoalEvent } from './core/goal/goal-event.ts';
import type { GoalState } from './core/goal/goal-state.ts';
import { type GoalStep, nextGoalStep } from './core/goal/goal-step.ts';
import { goals } from './goal-activities.ts';
import { type Cut, type Goal, type Heard, isOfJudging, judgeUnlessStopped } from './goal-judging.ts';
import { isHistoryLong } from './history.ts';
import { type GoalArgs, goalCommand, goalState, look, type OpenedGoal } from './messages.ts';
import { showGoal } from './visible.ts';

/**
 * A persisted objective. It knows when its session is done, not only idle: it queues the next round, judges each
 * end, rests and wakes. The decisions are in core/goal; here they meet the engine.
 */
export async function goalWorkflow(args: GoalArgs): Promise<void> {
  let opened: OpenedGoal | null = args.opened;
  let shown: string | null = null;
  const record = (heard: Heard) => {
    // What comes before the goal is known is found by the first look.
    if (!opened) return;
    const state = applyGoal(opened.state, { ...heard, atMs: Date.now() } as GoalEvent);
    opened = { ...opened, state };
    shown = showGoal(shown, state);
  };
  const stateNow = () => opened?.state ?? null;
  setHandler(look, () => record({ kind: 'noticed' }));
  setHandler(goalState, stateNow);
  setHandler(goalCommand, (command) => obey(command, stateNow, record), {
    validator: (command) => refuse(stateNow(), command),
  });
  const hearCancel = () => record({ kind: 'commanded', command: byEngine() });
  const whole = CancellationScope.current();
  void cancelHeard().then(hearCancel);
  await CancellationScope.nonCancellable(async () => {
    opened ??= await goals.loadGoal(args.goal);
    if (!opened) return;
    const { session, workspaceQueue, state: first } = opened;
    record({ kind: 'noticed' });
    // It may have come before there was a state to hear it; twice heard is once.
    if (whole.consideredCancelled) hearCancel();
    const state = () => stateNow() ?? first;
    await loop({ id: args.goal, workspaceQueue, state, record }, () => ({ session, workspaceQueue, state: state() }));
  });
}

async function loop(goal: Goal, openedNow: () => OpenedGoal): Promise<void> {
  let cut: Cut | null = null;
  for (;;) {
    if (isHistoryLong()) {
      await cut?.over;
      await condition(allHandlersFinished);
      await continueAsNew<typeof goalWorkflow>({ goal: goal.id, opened: openedNow() });
    }
    const step = nextGoalStep(goal.state(), Date.now());
    if (cut && (step.kind === 'direct' || isOfJudging(step))) {
      // What an order has cut may still be ending: neither a round nor a check begins beside it.
      await cut.over;
      cut = null;
      continue;
    }
    switch (step.kind) {
      case 'record':
        goal.record(await tell(goal, step));
        break;
      case 'look':
        await lookAround(goal, step);
        break;
      case 'direct':
        goal.record(await direct(goal, step));
        break;
      case 'limited':
        goal.record({ kind: 'limited' });
        break;
      case 'check':
      case 'judge':
      case 'doubt':
      case 'stopGate':
        cut = await judgeUnlessStopped(goal, step);
        break;
      case 'await':
        await rest(goal, step.untilMs);
        break;
      case 'finish':
        return await condition(allHandlersFinished);
    }
  }
}

async function tell(goal: Goal, { facts }: GoalStep & { kind: 'record' }): Promise<Heard> {
  await goals.recordGoal({ goal: goal.id, facts, state: goal.state() });
  return { kind: 'recorded', upTo: facts[facts.length - 1]?.n ?? 0 };
}

async function lookAround(goal: Goal, { upTo, afterTurn, sinceTurn }: GoalStep & { kind: 'look' }): Promise<void> {
  const { more, ...found } = await goals.lookGoal({ goal: goal.id, afterTurn, sinceTurn });
  goal.record({ kind: 'looked', upTo, ...found });
  if (more) goal.record({ kind: 'noticed' });
}

async function direct(goal: Goal, step: GoalStep & { kind: 'direct' }): Promise<Heard> {
  const { round, limits, afterTurn } = step;
  const { budget, spent, verdict } = goal.state();
  const turnsLeft = budget.turns - spent.turns;
  const request = { goal: goal.id, round, limits, turnsLeft, afterTurn, verdict };
  const outcome = await goals.directGoal.executeWithOptions({ summary: `directive of round ${round}` }, [request]);
  return { kind: 'directed', round, outcome };
}

/** Until it is time, or until something is heard; weeks cost nothing. */
async function rest(goal: Goal, untilMs: number | null): Promise<void> {
  const before = goal.state();
  const isHeard = () => goal.state() !== before;
  if (untilMs === null) return await condition(isHeard);
  const forMs = untilMs - Date.now();
  const heard = forMs > 0 && (await condition(isHeard, forMs, { summary: `the goal rests` }));
  if (!heard) goal.record({ kind: 'time' });
}

/** The same command again is answered the same, also after the goal's end. */
async function obey(
  command: GoalCommand,
  stateNow: () => GoalState | null,
  record: (heard: Heard) => void,
): Promise<string> {
  await condition(() => stateNow() !== null);
  refuse(stateNow(), command);
  record({ kind: 'commanded', command });
  const state = stateNow();
  return (state && answerTo(state, command.id)) ?? '';
}

function refuse(state: GoalState | null, command: GoalCommand): void {
  if (state && refusalOf(state, command))
    throw ApplicationFailure.nonRetryable('This goal has come to its end.', 'goal.final');
}

/** A cancel by the engine's own tools is the same as ours. */
function byEngine(): GoalCommand {
  return { id: `engine/${workflowInfo().runId}`, kind: 'cancel' };
}
