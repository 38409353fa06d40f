import { and, eq, or } from 'drizzle-orm';
import type { SampleRequest } from '../../workflows/core/requests.ts';
import type { Message } from '../../workflows/core/transcript.ts';
import type { Reminder } from '../../workflows/core/turn-state.ts';
import { judgeAnswer } from '../answer/judge-answer.ts';
import { openTodos } from '../context/open-todos.ts';
import { reminderText } from '../context/reminders.ts';
import type { Db } from '../store/database.ts';
import { call, effect, type OutputSchema, type StoredAgent } from '../store/schema.ts';

/** What reminders may be about. */
export interface ReminderFacts {
  readonly turn: string;
  readonly agent: StoredAgent;
  readonly schema: OutputSchema | null;
  readonly messages: readonly Message[];
  /** Sub-agents that work in the background. */
  readonly agents: number;
}

/** Reminders that are due, as messages, about what is so now. */
export async function dueReminders(db: Db, { reminders }: SampleRequest, facts: ReminderFacts): Promise<Message[]> {
  return await Promise.all(
    reminders.map(async (code): Promise<Message> => {
      return { kind: 'reminder', code, text: reminderText(code, await detailsOf(db, code, facts)) };
    }),
  );
}

async function detailsOf(db: Db, code: Reminder, facts: ReminderFacts): Promise<readonly string[]> {
  switch (code) {
    case 'structured_output':
      return faultsOfAnswer(facts);
    case 'todo':
      return openTodos(facts.messages, facts.agents).map((item) => `- ${item}`);
    case 'contract':
      return (await missing(db, facts)).map((tool) => `- ${tool}`);
    default:
      return [];
  }
}

function faultsOfAnswer({ messages, schema }: ReminderFacts): readonly string[] {
  const last = messages.findLast(({ kind }) => kind === 'assistant');
  if (last?.kind !== 'assistant' || schema === null) return [];
  const judged = judgeAnswer(last.text, schema);
  return judged.ok ? [] : [judged.faults];
}

async function missing(db: Db, { turn, agent }: ReminderFacts): Promise<readonly string[]> {
  const rows = await db
    .selectDistinct({ tool: call.tool })
    .from(call)
    .leftJoin(effect, eq(effect.key, call.key))
    // A call that the turn opened with was asked for in another one; its effect has come along.
    .where(and(or(eq(call.turn, turn), eq(effect.turn, turn)), eq(call.status, 'ok')));
  return (agent.contract?.tools ?? []).filter((tool) => !rows.some((row) => row.tool === tool));
}
