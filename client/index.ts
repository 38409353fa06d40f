export type { ApprovalAnswered, ApprovalReply, OpenApproval } from './approvals.ts';
export type { CancelJob, CancelledJob } from './cancel.ts';
export type { CostReport, UsageSum } from './cost.ts';
export type { EngineState } from './engine.ts';
export { BadId, BadPosition, EngineAway, SessionClosed, StoreAway } from './faults.ts';
export type { FollowRequest, RunEvent } from './follow.ts';
export type { GoalOrder, OrderAnswer, WakeRequest, WokenGoal } from './goal-orders.ts';
export type { Goal, GoalWithWakes } from './goals.ts';
export type { CreatedGoal, NewGoalRequest } from './new-goal.ts';
export type { BudgetWish, GoalWish } from '../activities/store/goal-plan.ts';
export type { CallText, TextEvent } from './hydrate.ts';
export type {
  InputAnswer,
  InputList,
  InputPage,
  LockAnswer,
  NewPrompt,
  Sent,
  SessionInput,
} from './inputs.ts';
export { JOB_STATES, type Job, type JobEnd, type JobState, type JobTurnEnd } from './job.ts';
export type { TextDelta } from './live-attempts.ts';
export type { MessageList, MessagePage, ShownMessage } from './messages.ts';
export type { OutsideEvent, ReportedEvent } from './outside-events.ts';
export type { PlanState } from './plan.ts';
export type { JobPage, ListRequest } from './read-jobs.ts';
export type { RecurringGoal, RecurringLine } from './recurring.ts';
export { createRuns, type JobWithResult, type OpenJob, type Runs, type RunsOptions } from './runs.ts';
export type {
  ForkSession,
  RewindSession,
  Session,
  SessionArchived as ArchiveAnswer,
  SessionForked,
  SessionList,
  SessionPage,
  SessionRewound,
} from './sessions.ts';
export type { ShownAgent } from './agents.ts';
export type { ShownCall, ShownEffect, ShownJob, ShownTurn } from './show.ts';
export type { ChainLink, Doing, UnknownEffect, Waiting, Why } from './why/report.ts';
export type { Catalogue, Submission, Submitted } from './submit.ts';
