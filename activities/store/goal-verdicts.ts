import { eq, min, sql } from 'drizzle-orm';
import type { Db } from './database.ts';
import { recordEvents } from './events.ts';
import { storable, storableDeep } from './hash.ts';
import { goalVerdict, usage } from './schema.ts';
import type { Usage } from '../../workflows/core/sample-outcome.ts';
import { isTold } from './turn-commit.ts';

export interface NewVerdict<T> {
  /** Names the try: goal, turn, who judged, which time. */
  readonly key: string;
  readonly goal: string;
  readonly session: string;
  readonly turn: string;
  readonly source: 'checks' | 'judge' | 'sceptic' | 'stop_gate';
  readonly told: T;
  /** The same as a code. */
  readonly found: string;
  readonly text: string;
  readonly nextStep?: string | null;
}

/** What this try was told before, if it was made already. */
export async function findVerdict<T>(db: Db, key: string): Promise<T | null> {
  const [row] = await db.select({ told: goalVerdict.told }).from(goalVerdict).where(eq(goalVerdict.key, key));
  return (row?.told as T | undefined) ?? null;
}

/** Keeps a verdict once; whoever comes second gets the first one's. */
export async function keepVerdict<T>(db: Db, verdict: NewVerdict<T>): Promise<T> {
  const { key, goal, session, turn, source, told, found, text, nextStep = null } = verdict;
  const stored = await db.transaction(async (tx) => {
    const rows = await tx
      .insert(goalVerdict)
      .values({
        key,
        goal,
        turn,
        source,
        told: storableDeep(told),
        text: storable(text),
        nextStep: nextStep && storable(nextStep),
      })
      .onConflictDoNothing()
      .returning({ key: goalVerdict.key });
    if (rows.length === 0) return false;
    const event = { kind: 'goal.judged', layer: 'goal', goal, source, found, verdict: key } as const;
    await recordEvents(tx, session, [{ key: `judged/${key}`, turn, event }]);
    return true;
  });
  return stored ? told : ((await findVerdict<T>(db, key)) ?? told);
}

export async function verdictText(
  db: Db,
  key: string | null,
): Promise<{ readonly text: string; readonly nextStep: string | null; readonly source: string } | null> {
  if (key === null) return null;
  const [row] = await db.select().from(goalVerdict).where(eq(goalVerdict.key, key));
  return row ? { text: row.text, nextStep: row.nextStep, source: row.source } : null;
}

export interface OpenedJudging {
  readonly attempt: string;
  readonly sample: string;
  readonly session: string;
  readonly turn: string;
  readonly model: string;
  readonly outputCapTokens: number;
  readonly worstMicroUsd: number | null;
}

/** The usage row of a judge's request, before it is sent; attempts that died with their worker are closed as lost. */
export async function openJudging(db: Db, opened: OpenedJudging): Promise<void> {
  await db
    .update(usage)
    .set({ outcome: 'lost', wasted: true, closedAt: sql`clock_timestamp()` })
    .where(sql`${usage.sample} = ${opened.sample} and ${usage.closedAt} is null`);
  await db.insert(usage).values({ ...opened, step: JUDGED_AFTER });
}

/** When the first attempt of a judge's request was made; null: there was none. */
export async function firstAsked(db: Db, sample: string): Promise<Date | null> {
  const [row] = await db
    .select({ at: min(usage.openedAt) })
    .from(usage)
    .where(eq(usage.sample, sample));
  return row?.at ?? null;
}

/** Behind every step of its turn. */
const JUDGED_AFTER = 1_000_000;

export async function closeJudging(
  db: Db,
  { attempt, outcome, used, wasted }: { attempt: string; outcome: string; used: Usage; wasted: boolean },
): Promise<void> {
  const { inputTokens, cachedTokens, outputTokens, reasoningTokens, complete, microUsd } = used;
  const spent = { inputTokens, cachedTokens, outputTokens, reasoningTokens, costMicroUsd: microUsd };
  await db
    .update(usage)
    .set({ ...(isTold(used) ? spent : {}), outcome, complete, wasted, closedAt: sql`clock_timestamp()` })
    .where(eq(usage.attempt, attempt));
}
