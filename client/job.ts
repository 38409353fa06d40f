import type { StructuredOutput } from '../activities/store/schema.ts';
import type { Decider, EndDetail, EndPhase, EndReason, Signal } from '../workflows/core/ends.ts';
import type { InputStatus } from '../workflows/core/inputs.ts';
import type { Usage } from '../workflows/core/sample-outcome.ts';

export const JOB_STATES = ['queued', 'running', 'blocked', 'needs_attention', 'done'] as const;

/** What a ticket system is told. Only `done` is final; `blocked` and `needs_attention` wait for somebody. */
export type JobState = (typeof JOB_STATES)[number];

/** How the turn of a job ended. `at` is an ISO time. */
export interface JobTurnEnd {
  readonly reason: EndReason;
  readonly detail: EndDetail;
  readonly decidedBy: Decider;
  readonly signal: Signal;
  readonly phase: EndPhase;
  readonly step: number;
  readonly usage: Usage;
  /** Who asked, where somebody did, and what they said. */
  readonly by: string | null;
  readonly why: string | null;
  readonly recordedBy: 'turn' | 'recovery';
  /** Null where none was asked for. */
  readonly structuredOutput: StructuredOutput | null;
  /** Whether the tools that the agent requires have succeeded; null where it requires none. */
  readonly contract: 'met' | 'unmet' | null;
  /** For a provider that was away: when it is worth trying again. ISO time; only a hint. */
  readonly resumeAt: string | null;
  readonly at: string;
}

/** Who or what took a job out of the queue before a turn began, or went on, with it, and what they said. `at` is an ISO time. */
export interface Dropped {
  readonly as: Extract<InputStatus, 'withdrawn' | 'dropped_by_cancel' | 'hook_blocked'>;
  readonly by: string | null;
  readonly why: string | null;
  readonly at: string | null;
}

export interface Job {
  readonly id: string;
  readonly session: string;
  readonly agent: string;
  readonly ticket: string | null;
  readonly state: JobState;
  readonly createdAt: string;
  /** The newest turn that works on it; null while it is queued. */
  readonly turn: string | null;
  /** How that turn ended; null while it has not, and for a job that never began. A running job goes on after it. */
  readonly end: JobTurnEnd | null;
  /** Set for a job that was taken back before it began or went on by itself, or kept back by a hook. */
  readonly dropped: Dropped | null;
  /** The goal that it came with, and how that stands; the job is done when the goal is. */
  readonly goal: JobGoal | null;
}

export interface JobGoal {
  readonly id: string;
  readonly status: string;
}

/** A job that came to rest: nothing happens to it by itself any more. */
export interface JobEnd {
  readonly job: string;
  readonly state: JobState;
  readonly turn: string | null;
  readonly end: JobTurnEnd | null;
  readonly dropped: Dropped | null;
  readonly goal: JobGoal | null;
  /** The model's last words, where it had some. */
  readonly text: string | null;
}

/** `next`: the input that is to open its next turn; only a job that goes on by itself has one behind a turn. */
export type JobFacts =
  | { readonly turn: null; readonly next: InputStatus }
  | { readonly turn: { readonly end: { readonly reason: EndReason } | null }; readonly next: InputStatus | null };

/** The state of a job, from its newest turn and what is to follow it. `stateSql` in read-jobs.ts says the same in SQL. */
export function jobStateOf({ turn, next }: JobFacts): JobState {
  if (next === 'queued' || next === 'forwarded') return turn === null ? 'queued' : 'running';
  if (turn === null || next !== null) return 'done';
  switch (turn.end?.reason) {
    case undefined:
      return 'running';
    case 'BLOCKED':
      return 'blocked';
    case 'INTERRUPTED':
      return 'needs_attention';
    case 'COMPLETED':
    case 'MAX_TOKENS':
    case 'ABORTED':
    case 'ERROR':
      return 'done';
  }
}

/** It goes on by itself while its goal does, and is done when that one is final. */
export function goalJobState(status: string): JobState {
  if (status === 'complete' || status === 'cancelled') return 'done';
  return WAITS_FOR_SOMEBODY.test(status) ? 'blocked' : 'running';
}

/** The same pattern stands in read-jobs.ts, for SQL. */
export const WAITS_FOR_SOMEBODY = /^(paused\((user|no_progress|refusal)\)|blocked|budget_limited)/;

export function isAtRest(state: JobState): boolean {
  return state !== 'queued' && state !== 'running';
}
