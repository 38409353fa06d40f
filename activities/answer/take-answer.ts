import { ANSWER_TOOL } from '../../workflows/core/ending-checks/structured-output.ts';
import type { Reply } from '../../workflows/core/sample-outcome.ts';
import type { ToolCall } from '../../workflows/core/transcript.ts';
import type { ModelResult } from '../model/port.ts';
import type { OutputSchema } from '../store/schema.ts';
import type { NewCall } from '../store/turn-commit.ts';
import { ANSWER_TEXTS } from './answer-tool.ts';
import { judgeAnswer } from './judge-answer.ts';

type CallAnswer = NonNullable<NewCall['answer']>;

/** What a reply is as an answer that has to fit a schema; null: it is none (yet). */
export interface TakenAnswer {
  readonly verdict: NonNullable<Reply['structured']>['verdict'];
  /** What each call of the answer tool is told; those calls are taken out of the reply. */
  readonly answers: readonly CallAnswer[];
}

export function takeAnswer(result: ModelResult & { kind: 'reply' }, schema: OutputSchema): TakenAnswer | null {
  const { calls, text, finish } = result;
  const [call] = calls;
  if (!call) return { verdict: verdictOf(judgeAnswer(text, schema).ok, finish), answers: [] };
  if (!calls.every(isAnswerCall)) return null;
  if (calls.length > 1) return { verdict: 'invalid', answers: calls.map(() => told('twice', ANSWER_TEXTS.twice)) };
  const judged = judgeAnswer(call.arguments, schema);
  const answer: CallAnswer = judged.ok
    ? { status: 'ok', text: ANSWER_TEXTS.taken, note: null }
    : told('bad_answer', ANSWER_TEXTS.faulty(judged.faults));
  return { verdict: verdictOf(judged.ok, finish), answers: [answer] };
}

/** For a call of the answer tool that came beside others. */
export const NOT_ALONE: CallAnswer = told('not_alone', ANSWER_TEXTS.notAlone);

export function isAnswerCall({ name }: Pick<ToolCall, 'name'>): boolean {
  return name === ANSWER_TOOL;
}

function told(note: string, text: string): CallAnswer {
  return { status: 'error', text, note };
}

/** Cut is not malformed: what is whole counts though its label says cut. */
function verdictOf(fits: boolean, finish: Reply['finish']): TakenAnswer['verdict'] {
  if (fits) return 'valid';
  return finish === 'length' ? 'cut' : 'invalid';
}
