import { goingOn } from '../going-on.ts';
import { POLICY } from '../policy.ts';
import type { Check } from './check.ts';

/** Unfinished todos: the model is told of them twice, then the turn ends with the list. */
export const todoGate: Check = (state, end, reply) => {
  const open = reply.openTodos ?? 0;
  if (state.rules.todoGate === 'off' || state.rules.schema === 'asked' || open === 0) {
    return { kind: 'passes', state, end };
  }
  if (state.todoNudges < POLICY.todoGate.nudges) {
    const nudged = goingOn({ ...state, reminders: ['todo'] }, 'todo_nudge');
    return { kind: 'goes_on', state: { ...nudged, todoNudges: state.todoNudges + 1 } };
  }
  return {
    kind: 'passes',
    state,
    end: {
      reason: 'COMPLETED',
      detail: 'todo_open',
      decidedBy: 'runtime',
      signal: { name: 'open_todos', count: open },
      phase: 'ending',
    },
  };
};
