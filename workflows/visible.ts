import { setCurrentDetails, upsertSearchAttributes } from '@temporalio/workflow';
import type { End } from './core/ends.ts';
import { limitWords } from './core/goal/goal-limits.ts';
import type { GoalState } from './core/goal/goal-state.ts';
import { nameOf } from './core/goal/moving.ts';
import type { TurnState } from './core/turn-state.ts';
import { waitCode, waitCodeOfEnd, type WaitingFor, waitingFor } from './core/waiting.ts';

/**
 * Shows operators what a turn waits for, where that has changed; a turn that just works tells nothing and costs
 * nothing. `shown` is the code that is shown now; the new one is returned.
 */
export function showWait(shown: string | null, state: TurnState): string | null {
  const wait = waitingFor(state);
  const code = wait && waitCode(wait);
  if (code === shown) return shown;
  upsertSearchAttributes({ PawlWaitingFor: code === null ? [] : [code] });
  setCurrentDetails(wait ? waitSentence(wait) : 'Works.');
  return code;
}

export function showEnd(end: End): void {
  const code = waitCodeOfEnd(end);
  upsertSearchAttributes({
    PawlEndReason: [end.reason],
    PawlEndDetail: [end.detail],
    PawlDecidedBy: [end.decidedBy],
    PawlWaitingFor: code === null ? [] : [code],
  });
  setCurrentDetails(`Ended ${end.reason}/${end.detail}, decided by ${end.decidedBy}.`);
}

/** Shows operators how a goal stands, where that has changed; `shown` is what is shown now, the new one is returned. */
export function showGoal(shown: string | null, state: GoalState): string {
  const name = nameOf(state.status);
  const now = `${name} ${state.rounds}`;
  if (now === shown) return now;
  if (name !== shown?.split(' ')[0]) upsertSearchAttributes({ PawlGoalStatus: [name] });
  setCurrentDetails(`Goal is ${name}, round ${state.rounds}; ${limitWords(state)}.`);
  return now;
}

function waitSentence(wait: WaitingFor): string {
  const until = wait.untilMs > 0 ? ` until ${new Date(wait.untilMs).toISOString()}` : '';
  switch (wait.kind) {
    case 'approval':
      return `Waits for a person to decide on approval ${wait.id}${until}.`;
    case 'outcome':
      return `Waits for a person to say what became of a call, ${wait.id}${until}.`;
    case 'input':
      return `Waits for a person to answer ${wait.id}${until}.`;
    case 'event':
      return `Waits for something outside, ${wait.id}${until}.`;
    case 'agent':
      return `Waits for a sub-agent, ${wait.id}.`;
    case 'rest':
      return `Rests after ${wait.cause}${until}.`;
  }
}
