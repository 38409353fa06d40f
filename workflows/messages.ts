import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { GoalCommand } from './core/goal/goal-event.ts';
import type { GoalState } from './core/goal/goal-state.ts';
import type { TurnState } from './core/turn-state.ts';

/** What one turn is given; also what it hands to itself when it continues as new. */
export interface TurnArgs {
  readonly turn: string;
  readonly session: string;
  /** Hash of the pinned agent definition. */
  readonly agent: string;
  /** Hash of the pinned tool list. */
  readonly tools: string;
  /** Task queue of the worker that has the session's files. */
  readonly workspaceQueue: string;
  readonly state: TurnState;
}

export interface SessionArgs {
  readonly session: string;
}

/** A goal as its workflow carries it. */
export interface OpenedGoal {
  readonly session: string;
  /** Task queue of the worker that has the session's files. */
  readonly workspaceQueue: string;
  readonly state: GoalState;
}

export interface GoalArgs {
  readonly goal: string;
  /** Null: it begins, and looks into the store how it stands. */
  readonly opened: OpenedGoal | null;
}

/** What a Schedule fires: a recurring goal begins a round of its own, another one is woken. */
export interface WakeArgs {
  readonly target: 'template' | 'goal';
  readonly id: string;
}

/** Pause, resume, cancel or edit, answered with the status that the goal has then; refused once it is final. */
export const goalCommand = defineUpdate<string, [GoalCommand]>('goalCommand');

/** The goal's whole state: references and counters, no text. Null until it is known. */
export const goalState = defineQuery<GoalState | null>('state');

export function goalWorkflowId(goal: string): string {
  return `goal/${goal}`;
}

/** Of the Schedule that fires a recurring goal, or wakes another one. */
export function goalScheduleId(goal: string): string {
  return `goal/${goal}`;
}

/** Something for this session or goal lies in the store: look. Carries nothing, so it can't be lost or doubled. */
export const look = defineSignal('look');

/** Ids of inputs that join the running turn at its next safe point, and which of them can't wait for it. */
export const forward = defineSignal<[inputs: readonly string[], urgent?: readonly string[]]>('forward');

/** The same as `approvalAnswered`, for when no worker is there to take an update at once. */
export const answerWaits = defineSignal<[string]>('answerWaits');

/** An approval of this turn has its answer in the store; refused when the turn does not wait for it. */
export const approvalAnswered = defineUpdate<'taken', [string]>('approvalAnswered');

/** The turn's whole state: references and counters, no text. */
export const turnState = defineQuery<TurnState>('state');

export function sessionWorkflowId(session: string): string {
  return `session/${session}`;
}

export function turnWorkflowId(turn: string): string {
  return `turn/${turn}`;
}

/** Ids of turns read `<session>/<n>`; n is never used again. */
export function turnIdOf(session: string, n: number): string {
  return `${session}/${n}`;
}

/** How a session is told to look: its workflow is started where it is not running. */
export function lookOfSession(taskQueue: string, session: string) {
  const args: [SessionArgs] = [{ session }];
  return { workflowId: sessionWorkflowId(session), taskQueue, args, signal: look };
}

/** The same for a goal, which finds in the store how it stands. */
export function lookOfGoal(taskQueue: string, goal: string) {
  const args: [GoalArgs] = [{ goal, opened: null }];
  const shown = { workflowTaskTimeout: '10s', staticSummary: `goal ${goal}` } as const;
  return { workflowId: goalWorkflowId(goal), taskQueue, args, signal: look, ...shown };
}
