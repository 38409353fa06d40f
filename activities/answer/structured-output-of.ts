import { eq } from 'drizzle-orm';
import type { Answered } from '../../workflows/core/ending-checks/structured-output.ts';
import type { Deps } from '../deps.ts';
import { schemaOf } from '../store/definitions.ts';
import { ownerOf } from '../store/owners.ts';
import { message, type StructuredOutput } from '../store/schema.ts';
import { judgeAnswer } from './judge-answer.ts';
import { isAnswerCall } from './take-answer.ts';

/** The answer for the end record, read from the message that the workflow names. */
export async function structuredOutputOf(
  { database, chains }: Pick<Deps, 'database' | 'chains'>,
  turn: string,
  answered: Answered | null,
): Promise<StructuredOutput | null> {
  if (answered === null) return null;
  if (answered.kind === 'fault') return { error: answered.fault };
  const { db } = database;
  const { outputSchema } = await ownerOf(db, turn);
  if (outputSchema === null) return null;
  const known = chains.get(answered.message)?.body;
  const [row] = known ? [] : await db.select().from(message).where(eq(message.hash, answered.message));
  const body = known ?? row?.body;
  if (body?.kind !== 'assistant') throw new Error('the message of a structured answer is not in the store');
  const call = body.calls.find(isAnswerCall);
  const judged = judgeAnswer(call?.arguments ?? body.text, await schemaOf(db, outputSchema));
  return judged.ok ? { value: judged.value } : { error: 'invalid' };
}
