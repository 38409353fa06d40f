import { ANSWER_TOOL } from '../../workflows/core/ending-checks/structured-output.ts';
import type { OutputSchema, StoredTool } from '../store/schema.ts';

const lists = new WeakMap<readonly StoredTool[], WeakMap<OutputSchema, readonly StoredTool[]>>();

/** The tools with the one that takes the answer; the same list for the same two, so that it is lowered once. */
export function withAnswerTool(tools: readonly StoredTool[], schema: OutputSchema): readonly StoredTool[] {
  const known = lists.get(tools) ?? new WeakMap<OutputSchema, readonly StoredTool[]>();
  lists.set(tools, known);
  const list = known.get(schema) ?? [...tools, answerTool(schema)];
  known.set(schema, list);
  return list;
}

function answerTool(schema: OutputSchema): StoredTool {
  return {
    name: ANSWER_TOOL,
    description: 'Hands in the final answer. Call it exactly once, alone, after all other work is done.',
    parameters: schema,
    effect: 'none',
    runs: 'activity',
  };
}

/** Behind the agent's own instructions, where the tool stands in for a format. */
export const ANSWER_INSTRUCTION = `When all work is done, hand in the final answer by calling ${ANSWER_TOOL} exactly once, alone.`;

/** What the model is told of a call of that tool. */
export const ANSWER_TEXTS = {
  taken: 'The answer is taken.',
  notAlone: `Not taken: call ${ANSWER_TOOL} alone, last, after the other calls have returned.`,
  twice: `Not taken: call ${ANSWER_TOOL} once, with the whole answer.`,
  faulty: (faults: string) =>
    `Not taken. ${faults}\nCorrect this and call ${ANSWER_TOOL} again, with the whole answer.`,
} as const;
