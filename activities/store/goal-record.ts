import { and, eq, isNull, sql } from 'drizzle-orm';
import { type GoalFact, type GoalState, isFinal } from '../../workflows/core/goal/goal-state.ts';
import { nameOf } from '../../workflows/core/goal/moving.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { changeGoal, copyState } from './goals.ts';
import { withdrawDirective } from './goal-direct.ts';
import { goalCommand, wake } from './schema.ts';

interface GoalAt {
  readonly goal: string;
  readonly session: string;
}

/**
 * Tells the store what the goal has settled, each fact once whatever is repeated. Returns turns that are to be
 * cancelled, with the command that wants it.
 */
export async function recordFacts(
  db: Db,
  at: GoalAt,
  facts: readonly GoalFact[],
  state: GoalState,
): Promise<readonly { readonly turn: string; readonly command: CommandRow | null; readonly id: string }[]> {
  return await db.transaction(async (tx) => {
    const events: NewEvent[] = [];
    const cancels: { turn: string; command: CommandRow | null; id: string }[] = [];
    for (const fact of facts) {
      switch (fact.kind) {
        case 'moved':
          events.push(await moved(tx, at, fact));
          break;
        case 'wake_settled':
          events.push(...(await settled(tx, at, fact)));
          break;
        case 'wake_remembered':
          break;
        case 'edited':
          events.push(...(await edited(tx, at, fact.edit)));
          break;
        case 'withdrawn':
          events.push(...withdrawal((await withdrawDirective(tx, { ...at, round: fact.round })).withdrawn, at.goal));
          break;
        case 'turn_cancelled': {
          const found = await withdrawDirective(tx, { ...at, round: 'newest' });
          events.push(...withdrawal(found.withdrawn, at.goal));
          if (found.turn !== null)
            cancels.push({ turn: found.turn, id: fact.command, command: await commandOf(tx, at.goal, fact.command) });
        }
      }
    }
    await copyState(tx, at.goal, state);
    await recordEvents(tx, at.session, events);
    return cancels;
  });
}

export type CommandRow = typeof goalCommand.$inferSelect;

async function commandOf(tx: Tx, goal: string, id: string): Promise<CommandRow | null> {
  const [row] = await tx
    .select()
    .from(goalCommand)
    .where(and(eq(goalCommand.goal, goal), eq(goalCommand.id, id)));
  return row ?? null;
}

async function moved(tx: Tx, { goal }: GoalAt, fact: GoalFact & { kind: 'moved' }): Promise<NewEvent> {
  const { to, cause, decidedBy, turn, n } = fact;
  const command = cause.name === 'command' ? await commandOf(tx, goal, cause.id) : null;
  if (command && command.answer === null)
    await tx
      .update(goalCommand)
      .set({ answer: nameOf(to) })
      .where(and(eq(goalCommand.goal, goal), eq(goalCommand.id, command.id)));
  const { by = null, why = null } = command ?? {};
  const row = { layer: 'goal', goal, reason: to.kind, detail: detailOf(nameOf(to)), decidedBy, by, why } as const;
  const told = { ...row, signal: cause.name, evidence: cause };
  const event = isFinal(to) ? ({ kind: 'goal.ended', ...told } as const) : ({ kind: 'goal.moved', ...told } as const);
  return { key: `goal/${goal}/${n}`, turn, event };
}

/** `paused(user)` → `user`. */
function detailOf(name: string): string | null {
  return /\((\w+)\)$/.exec(name)?.[1] ?? null;
}

async function settled(tx: Tx, { goal }: GoalAt, fact: GoalFact & { kind: 'wake_settled' }): Promise<NewEvent[]> {
  const { wake: id, outcome, why } = fact;
  const rows = await tx
    .update(wake)
    .set({ outcome, why, settledAt: sql`clock_timestamp()` })
    .where(and(eq(wake.id, id), isNull(wake.outcome)))
    .returning({ id: wake.id });
  if (rows.length === 0) return [];
  return [{ key: `wake/${id}`, turn: null, event: { kind: 'goal.wake', layer: 'goal', goal, wake: id, outcome, why } }];
}

async function edited(tx: Tx, { goal }: GoalAt, edit: string): Promise<NewEvent[]> {
  const command = await commandOf(tx, goal, edit);
  // An edit that was made is not made again by a repeat: a newer one may stand by then.
  if (!command || command.appliedAt !== null) return [];
  await changeGoal(tx, goal, command);
  await tx
    .update(goalCommand)
    .set({ appliedAt: sql`clock_timestamp()` })
    .where(and(eq(goalCommand.goal, goal), eq(goalCommand.id, edit)));
  return [{ key: `goal/${goal}/edit/${edit}`, turn: null, event: { kind: 'goal.edited', layer: 'goal', goal, edit } }];
}

function withdrawal(input: string | null, by: string): NewEvent[] {
  if (input === null) return [];
  const event = {
    kind: 'input.dropped',
    layer: 'driver',
    input,
    status: 'withdrawn',
    by,
    why: 'the goal rests',
  } as const;
  return [{ key: `withdrawn/${input}`, turn: null, event }];
}
