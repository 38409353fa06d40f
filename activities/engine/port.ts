/** What the engine says of a workflow that should be running. */
export type WorkflowFate =
  | { readonly kind: 'running' }
  | { readonly kind: 'completed' | 'canceled' | 'timed_out' }
  | { readonly kind: 'failed'; readonly type: string | null }
  | { readonly kind: 'terminated'; readonly by: string | null; readonly why: string | null }
  | { readonly kind: 'unknown' };

/** What the activities ask of the workflow engine. */
export interface Engine {
  /** Whether this run is the newest of its workflow. */
  isCurrentRun(workflowId: string, run: string): Promise<boolean>;
  /** Identity of whoever asked the engine to cancel this run, from its history. */
  cancelAuthor(workflowId: string, run: string): Promise<string | null>;
  /** False: the engine has no such workflow running. */
  requestCancel(workflowId: string): Promise<boolean>;
  fateOf(workflowId: string): Promise<WorkflowFate>;
  /** Tells a turn that an approval has its answer; one that is gone is not disturbed. */
  answerWaits(workflowId: string, approval: string): Promise<void>;
  /** Tells a session that something for it lies in the store, starting its workflow where it is not running. */
  look(session: string): Promise<void>;
  /** The same for a goal. */
  lookGoal(goal: string): Promise<void>;
  /** Nothing wakes the goal any more; one that nothing woke is left as it is. */
  endSchedule(goal: string): Promise<void>;
}
