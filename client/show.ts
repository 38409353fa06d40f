import { asc, eq } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { call, effect, type EffectState, input, session, turn, type UndoState } from '../activities/store/schema.ts';
import type { CallStatus, Effect } from '../workflows/core/tools.ts';
import { agentsOfInput, type ShownAgent } from './agents.ts';
import { type CostReport, costOfInput, workedOn } from './cost.ts';
import type { Job, JobTurnEnd } from './job.ts';
import { endOf, type FoundJob, lastWords } from './read-jobs.ts';

export interface ShownTurn {
  readonly id: string;
  readonly n: number;
  readonly openedAt: string;
  /** The turn before, which a machine had ended, where the job went on by itself. */
  readonly continues: string | null;
  readonly end: JobTurnEnd | null;
}

export interface ShownCall {
  readonly key: string;
  readonly turn: string;
  readonly step: number;
  readonly tool: string;
  readonly arguments: string;
  /** Null while it runs or waits. */
  readonly status: CallStatus | null;
  readonly note: string | null;
  readonly result: string | null;
  readonly createdAt: string;
  readonly finishedAt: string | null;
}

export interface ShownEffect {
  readonly key: string;
  readonly turn: string;
  readonly tool: string;
  readonly effect: Effect;
  readonly state: EffectState;
  /** What became of taking it back; null where nobody tried. */
  readonly undo: UndoState | null;
  readonly startedAt: string | null;
  readonly settledAt: string | null;
}

export interface ShownJob {
  readonly job: Job;
  /** Whether its session plans: only readers and writes to the plan file run. */
  readonly plan: boolean;
  readonly prompt: string;
  readonly turns: readonly ShownTurn[];
  readonly calls: readonly ShownCall[];
  readonly effects: readonly ShownEffect[];
  /** Sub-agents, their own as well, in the order in which they were started. */
  readonly agents: readonly ShownAgent[];
  readonly usage: CostReport;
  readonly text: string | null;
}

/** Everything the store knows of a job, in the order in which it happened. */
export async function showJob(db: Db, found: FoundJob): Promise<ShownJob> {
  const ofJob = eq(turn.origin, found.input);
  const [asked] = await db
    .select({ prompt: input.body, plan: session.plan })
    .from(input)
    .innerJoin(session, eq(session.id, input.session))
    .where(eq(input.id, found.input));
  const turns = await db
    .select({ turn, continues: input.continues })
    .from(turn)
    .innerJoin(input, eq(input.id, turn.input))
    .where(ofJob)
    .orderBy(asc(turn.n));
  const calls = await db
    .select({ call })
    .from(call)
    .innerJoin(turn, eq(turn.id, call.turn))
    .where(ofJob)
    .orderBy(asc(turn.n), asc(call.step), asc(call.createdAt), asc(call.ordinal));
  const effects = await db
    .select({ effect })
    .from(effect)
    .innerJoin(turn, eq(turn.id, effect.turn))
    .where(workedOn(found.input))
    .orderBy(asc(effect.createdAt), asc(effect.key));
  return {
    job: found.job,
    plan: asked?.plan ?? false,
    prompt: asked?.prompt ?? '',
    turns: turns.map(({ turn: { id, n, openedAt, ...row }, continues }) => ({
      id,
      n,
      openedAt: openedAt.toISOString(),
      continues,
      end: endOf({ id, n, openedAt, ...row }),
    })),
    calls: calls.map((row) => shownCall(row.call)),
    effects: effects.map((row) => shownEffect(row.effect)),
    agents: await agentsOfInput(db, found.input),
    usage: await costOfInput(db, found.input),
    text: await lastWords(db, found.head),
  };
}

function shownCall(row: typeof call.$inferSelect): ShownCall {
  const { key, turn: turnId, step, tool, status, note, result } = row;
  return {
    key,
    turn: turnId,
    step,
    tool,
    arguments: row.arguments,
    status,
    note,
    result,
    createdAt: row.createdAt.toISOString(),
    finishedAt: row.finishedAt?.toISOString() ?? null,
  };
}

function shownEffect(row: typeof effect.$inferSelect): ShownEffect {
  const { key, turn: turnId, tool, state } = row;
  return {
    key,
    turn: turnId,
    tool,
    effect: row.effect,
    state,
    undo: row.undo,
    startedAt: row.startedAt?.toISOString() ?? null,
    settledAt: row.settledAt?.toISOString() ?? null,
  };
}
