import type { GoalCommand } from './goal-event.ts';
import { allowedOf, goalLimitReached } from './goal-limits.ts';
import {
  type AtJudging,
  type Doing,
  type GoalBudget,
  type GoalCause,
  type GoalLimitName,
  type GoalState,
  type GoalStatus,
  isFinal,
} from './goal-state.ts';
import { doing, lentNoMore, moving, nameOf, waking, withFact } from './moving.ts';

/** Why a command can't be obeyed; null: it can. */
export function refusalOf(state: GoalState, { id }: GoalCommand): 'goal.final' | null {
  return isFinal(state.status) && answerTo(state, id) === null ? 'goal.final' : null;
}

/** What a command was answered: the status it has brought about; null for one that is not known. */
export function answerTo({ commands }: GoalState, id: string): string | null {
  return commands.find((known) => known.id === id)?.answer ?? null;
}

const REMEMBERED = 50;

/** The same id again changes nothing. */
export function commanded(state: GoalState, command: GoalCommand): GoalState {
  if (answerTo(state, command.id) !== null || isFinal(state.status)) return state;
  const next = obeyed(state, command);
  const commands = [...state.commands, { id: command.id, answer: nameOf(next.status) }].slice(-REMEMBERED);
  return { ...next, commands };
}

function obeyed(known: GoalState, command: GoalCommand): GoalState {
  const cause = { name: 'command', id: command.id } as const;
  switch (command.kind) {
    case 'pause':
      return isPausedByUser(known) ? known : moving(known, pausedFrom(known), cause, 'user');
    case 'resume':
      return known.status.kind === 'active' || known.status.kind === 'budget_limited' ? known : resumed(known, cause);
    case 'cancel':
      // A round may run on while the goal rests already.
      return moving(
        withFact(known, { kind: 'turn_cancelled', command: command.id }),
        { kind: 'cancelled' },
        cause,
        'user',
      );
    case 'edit':
      return edited(known, command);
  }
}

function isPausedByUser({ status }: GoalState): boolean {
  return status.kind === 'paused' && status.by === 'user';
}

function pausedFrom({ status }: GoalState): GoalStatus {
  const unjudged = status.kind === 'active' ? judgingOf(status.doing) : null;
  return { kind: 'paused', by: 'user', ...(unjudged && { unjudged }) };
}

function judgingOf(doing: Doing): AtJudging | null {
  if (doing.kind === 'lent') return doing.judging;
  return doing.kind === 'judging' ? doing : null;
}

/** What the pause has cut is gone on with, if it is still the newest turn. */
function resumed(state: GoalState, cause: GoalCause): GoalState {
  const { status, seenTurn, brakes } = state;
  const woken = waking({ ...state, brakes: { ...brakes, outages: 0 } }, cause, 'user');
  const unjudged = status.kind === 'paused' && status.by === 'user' ? status.unjudged : undefined;
  if (!unjudged || unjudged.turn.turn !== seenTurn?.turn) return woken;
  return doing(woken, { ...unjudged, turn: { ...unjudged.turn, isAgain: true } });
}

/** The budget that was lacking lets the goal go on when it is raised; one that was lowered is looked at before the next round. */
function edited(state: GoalState, command: GoalCommand & { readonly kind: 'edit' }): GoalState {
  const budget: GoalBudget = { ...state.budget, ...command.budget };
  const next = { ...state, budget };
  const told = command.wish === 'changed' ? withFact(next, { kind: 'edited', edit: command.id }) : next;
  const { status } = told;
  if (status.kind === 'active' && status.doing.kind === 'lent')
    return isRaised(state, budget, status.doing.limit) ? lentNoMore(told, status.doing) : told;
  if (status.kind !== 'budget_limited' || !isRaised(state, budget, status.limit)) return told;
  const reached = goalLimitReached(told);
  if (!reached) return waking(told, { name: 'command', id: command.id }, 'user');
  // Another one may be lacking now.
  return reached.limit === status.limit
    ? told
    : moving(told, { kind: 'budget_limited', limit: reached.limit }, reached, 'runtime');
}

function isRaised(before: GoalState, budget: GoalBudget, limit: GoalLimitName): boolean {
  return allowedOf(budget, limit) > allowedOf(before.budget, limit);
}
