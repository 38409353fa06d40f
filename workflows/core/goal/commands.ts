import type { GoalCommand } from './goal-event.ts';
import { goalLimitReached } from './goal-limits.ts';
import { type GoalBudget, type GoalState, isFinal } from './goal-state.ts';
import { moving, nameOf, waking, withFact } from './moving.ts';

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
      return isPausedByUser(known) ? known : moving(known, { kind: 'paused', by: 'user' }, cause, 'user');
    case 'resume':
      return known.status.kind === 'active' || known.status.kind === 'budget_limited'
        ? known
        : waking({ ...known, brakes: { ...known.brakes, outages: 0 } }, cause, 'user');
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

/** A budget that was raised lets the goal go on; one that was lowered is looked at before the next round. */
function edited(state: GoalState, command: GoalCommand & { readonly kind: 'edit' }): GoalState {
  const budget: GoalBudget = { ...state.budget, ...command.budget };
  const next = { ...state, budget };
  const told = command.wish === 'changed' ? withFact(next, { kind: 'edited', edit: command.id }) : next;
  if (told.status.kind !== 'budget_limited' || goalLimitReached(told)) return told;
  return waking(told, { name: 'command', id: command.id }, 'user');
}
