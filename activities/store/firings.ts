import { and, desc, eq, gte, isNotNull, ne, sql } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import { agentOf } from './definitions.ts';
import { storeGoal } from './goals.ts';
import { newId } from './ids.ts';
import { insertSession } from './intake.ts';
import type { WakeArgs } from '../../workflows/messages.ts';
import { type FiringOutcome, goal, goalFiring, goalTemplate, wake } from './schema.ts';
import { storeWake } from './wakes.ts';

/**
 * One firing of a recurring goal. It begins a goal of its own, named by its time, unless an earlier one is still
 * open. Firings that were missed collapse: what fell due before the last one was handled is covered by it. Returns
 * the goal that it began.
 */
export async function fireTemplate(db: Db, id: string, slot: Date): Promise<string | null> {
  return await db.transaction(async (tx) => {
    const [template] = await tx.select().from(goalTemplate).where(eq(goalTemplate.id, id)).for('update');
    if (!template) return null;
    const [before] = await tx
      .select()
      .from(goalFiring)
      .where(and(eq(goalFiring.template, id), eq(goalFiring.slot, slot)));
    if (before) return before.outcome === 'started' ? before.goal : null;
    const keep = async (outcome: FiringOutcome, of: string | null) => {
      await tx.insert(goalFiring).values({ template: id, slot, outcome, goal: of });
    };
    if (template.endedAt) {
      await keep('cancelled', null);
      return null;
    }
    const covering = await handledSince(tx, id, slot);
    if (covering) {
      await keep('superseded', covering.goal);
      return null;
    }
    const open = await openRound(tx, id);
    if (open !== null) {
      await keep('skipped', open);
      return null;
    }
    const begun = await begin(tx, template, slot);
    await keep('started', begun);
    return begun;
  });
}

/** What was itself covered covers nothing: where each firing is late, none would ever begin anything. */
async function handledSince(tx: Tx, id: string, slot: Date): Promise<typeof goalFiring.$inferSelect | undefined> {
  const [row] = await tx
    .select()
    .from(goalFiring)
    .where(and(eq(goalFiring.template, id), ne(goalFiring.outcome, 'superseded'), gte(goalFiring.createdAt, slot)))
    .orderBy(desc(goalFiring.createdAt))
    .limit(1);
  return row;
}

async function openRound(tx: Tx, id: string): Promise<string | null> {
  const [row] = await tx
    .select({ id: goal.id })
    .from(goal)
    .where(and(eq(goal.template, id), eq(goal.isFinal, false)))
    .limit(1);
  return row?.id ?? null;
}

async function begin(tx: Tx, template: typeof goalTemplate.$inferSelect, slot: Date): Promise<string> {
  const { id: of, tenant, objective, checks, judge, budget, sceptics, createdBy: by, fingerprint } = template;
  const session = newId('ses');
  await insertSession(tx, {
    id: session,
    tenant,
    agent: await agentOf(tx, template.agent),
    workspace: { kind: template.workspaceKind, path: template.workspacePath, queue: template.workspaceQueue },
    title: null,
  });
  const id = roundOf(of, slot);
  const round = { id, tenant, session, objective, checks, judge, budget, sceptics, by, fingerprint, template: of };
  await storeGoal(tx, round);
  return id;
}

export function roundOf(template: string, slot: Date): string {
  return `${template}/${slot.toISOString().replace('.000Z', 'Z')}`;
}

/** Nothing is to fire for it any more: the goal, or the recurring one, has come to its end. */
export async function isOver(db: Db, { target, id }: WakeArgs): Promise<boolean> {
  const ended =
    target === 'template'
      ? db.$count(goalTemplate, and(eq(goalTemplate.id, id), isNotNull(goalTemplate.endedAt)))
      : db.$count(goal, and(eq(goal.id, id), eq(goal.isFinal, true)));
  return (await ended) > 0;
}

/** The same for a goal that is only woken: one that fell due before an earlier one was handled is covered by it. */
export async function wakeBySchedule(db: Db, id: string, slot: Date): Promise<string | null> {
  return await db.transaction(async (tx) => {
    const [row] = await tx.select({ id: goal.id }).from(goal).where(eq(goal.id, id)).for('update');
    if (!row) return null;
    const key = `schedule/${slot.toISOString()}`;
    const [covering] = await tx
      .select({ id: wake.key })
      .from(wake)
      .where(
        and(
          eq(wake.goal, id),
          eq(wake.source, 'schedule'),
          // A wake that the goal remembers stands for others until it fires; one that only a firing covers does not.
          sql`(${wake.outcome} is distinct from 'superseded' or ${wake.why} not like 'schedule/%')`,
          gte(wake.createdAt, slot),
        ),
      )
      .orderBy(desc(wake.createdAt))
      .limit(1);
    const isCovered = covering !== undefined && covering.id !== key;
    const settled = isCovered ? { settled: { outcome: 'superseded', why: covering.id } as const } : {};
    const stored = await storeWake(tx, { goal: id, key, source: 'schedule', event: null, by: null, ...settled });
    return stored.outcome === null ? id : null;
  });
}
