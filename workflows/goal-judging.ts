import { ActivityFailure, CancellationScope, condition } from '@temporalio/workflow';
import type { GoalEvent } from './core/goal/goal-event.ts';
import { isJudging } from './core/goal/judging.ts';
import type { GoalState } from './core/goal/goal-state.ts';
import type { GoalStep } from './core/goal/goal-step.ts';
import { goals, onGoalFiles } from './goal-activities.ts';

export type Heard = GoalEvent extends infer E ? (E extends GoalEvent ? Omit<E, 'atMs'> : never) : never;

/** The loop's variables, for the functions that take a step. */
export interface Goal {
  readonly id: string;
  readonly workspaceQueue: string;
  state(): GoalState;
  record(heard: Heard): void;
}

type JudgingStep = GoalStep & { readonly kind: 'check' | 'judge' | 'doubt' | 'stopGate' };

export function isOfJudging(step: GoalStep): step is JudgingStep {
  return step.kind === 'check' || step.kind === 'judge' || step.kind === 'doubt' || step.kind === 'stopGate';
}

/** What was cut and may still be ending; nobody hears what it says. */
export interface Cut {
  readonly over: Promise<unknown>;
}

/** Takes a step of judging; an order that ends the judging cuts it, so that the order is told outside at once. */
export async function judgeUnlessStopped(goal: Goal, step: JudgingStep): Promise<Cut | null> {
  const working = new CancellationScope();
  const watching = new CancellationScope();
  const asked = working.run(() => ask(goal, step));
  const stopped = watching.run(() => condition(() => !isJudging(goal.state())));
  const heard = await Promise.race([asked, stopped]);
  watching.cancel();
  if (heard) {
    goal.record(heard);
    return null;
  }
  working.cancel();
  return { over: asked };
}

async function ask(goal: Goal, step: JudgingStep): Promise<Heard> {
  switch (step.kind) {
    case 'check':
      return await check(goal, step.turn);
    case 'judge':
      return await judge(goal, step);
    case 'doubt':
      return await doubt(goal, step);
    case 'stopGate':
      return await stopGate(goal, step.turn);
  }
}

async function check(goal: Goal, turn: string): Promise<Heard> {
  try {
    return { kind: 'checked', ...(await onGoalFiles(goal.workspaceQueue).checkGoal({ goal: goal.id, turn })) };
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    return { kind: 'checked', outcome: 'away', evidence: '', verdict: null };
  }
}

const UNUSABLE = { kind: 'unusable' } as const;
const FREE = { tokens: 0, microUsd: 0 } as const;

async function judge(goal: Goal, { turn, failures, left }: GoalStep & { kind: 'judge' }): Promise<Heard> {
  try {
    return { kind: 'judged', ...(await goals.judgeGoal({ goal: goal.id, turn, failures, left })) };
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    return { kind: 'judged', verdict: UNUSABLE, usage: FREE };
  }
}

async function doubt(goal: Goal, step: GoalStep & { kind: 'doubt' }): Promise<Heard> {
  const { turn, sceptic, failures, left } = step;
  try {
    const { verdict: vote, usage } = await goals.doubtGoal({ goal: goal.id, turn, sceptic, failures, left });
    return { kind: 'doubted', vote, usage };
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    return { kind: 'doubted', vote: UNUSABLE, usage: FREE };
  }
}

async function stopGate(goal: Goal, turn: string): Promise<Heard> {
  try {
    return { kind: 'gated', ...(await onGoalFiles(goal.workspaceQueue).goalStopGate({ goal: goal.id, turn })) };
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    return { kind: 'gated', answer: 'away', verdict: null };
  }
}
