import { and, eq, isNull, type SQL, sql } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import { recordEvents } from './events.ts';
import { turn, turnRun } from './schema.ts';

/** Which engine run commits to which turn; plain data that the workflow passes along. */
export interface Fence {
  readonly turn: string;
  readonly run: string;
  /** This run replays the past of another one: somebody reset the workflow. */
  readonly isReset: boolean;
}

/** A commit that must not happen. `code` is one of our dotted types; nothing of the content is in it. */
export class FenceRefused extends Error {
  readonly code: 'turn.already_ended' | 'turn.fenced';

  constructor(code: FenceRefused['code']) {
    super(code);
    this.name = 'FenceRefused';
    this.code = code;
  }
}

export interface FencedTurn {
  readonly id: string;
  readonly session: string;
  readonly stream: string;
  readonly tenant: string;
  readonly generation: number;
  readonly head: string;
  readonly baseHead: string;
  readonly sessionHead: string;
  readonly workspacePath: string;
  /** The promoted input, which the turn's end consumes. */
  readonly input: string;
  /** The input whose work this is. */
  readonly origin: string;
}

/** Asks the engine whether this run is the newest of its workflow. */
export type ConfirmRun = (turn: string, run: string) => Promise<boolean>;

/**
 * Makes a run known before its first commit. The first run of a turn joins at generation 0; any later one
 * is let in only after the engine has confirmed it, and one that is a reset raises the generation.
 */
export async function enterRun(db: Db, fence: Fence, known: Set<string>, confirm: ConfirmRun): Promise<void> {
  const seen = `${fence.turn} ${fence.run}`;
  if (known.has(seen)) return;
  if (!fence.isReset && (await joinAsFirst(db, fence))) {
    known.add(seen);
    return;
  }
  const runs = await db.select().from(turnRun).where(eq(turnRun.turn, fence.turn));
  if (!runs.some((row) => row.run === fence.run)) {
    if (runs.length > 0 && !(await confirm(fence.turn, fence.run))) throw new FenceRefused('turn.fenced');
    await db.transaction((tx) => joinTurn(tx, fence)).catch(ignoreDouble);
  }
  known.add(seen);
}

/** The usual case in one statement: an open turn that no run has entered yet. */
async function joinAsFirst(db: Db, fence: Fence): Promise<boolean> {
  const { rows } = await db.execute(sql`
    insert into pawl.turn_run (turn, run, generation)
    select t.id, ${fence.run}, t.generation from pawl.turn t
    where t.id = ${fence.turn} and t.ended_at is null
      and not exists (select from pawl.turn_run r where r.turn = t.id)
    on conflict do nothing returning run`);
  return rows.length > 0;
}

async function joinTurn(tx: Tx, fence: Fence): Promise<void> {
  const raise = fence.isReset ? 1 : 0;
  const [row] = await tx
    .update(turn)
    .set({ generation: sql`${turn.generation} + ${raise}` })
    .where(and(eq(turn.id, fence.turn), isNull(turn.endedAt)))
    .returning({ generation: turn.generation, session: turn.session });
  if (!row) throw new FenceRefused('turn.already_ended');
  const joined = await tx
    .insert(turnRun)
    .values({ turn: fence.turn, run: fence.run, generation: row.generation })
    .onConflictDoNothing()
    .returning();
  if (joined.length === 0) throw new RunJoinedMeanwhile();
  if (!fence.isReset) return;
  await recordEvents(tx, row.session, [
    {
      key: `reset/${fence.run}`,
      turn: fence.turn,
      event: { kind: 'turn.reset', layer: 'turn', generation: row.generation },
    },
  ]);
}

/** Two activities of one run came first at the same time: the later one is rolled back, the run is known. */
class RunJoinedMeanwhile extends Error {
  override readonly name = 'RunJoinedMeanwhile';
}

function ignoreDouble(error: unknown): void {
  if (!(error instanceof RunJoinedMeanwhile)) throw error;
}

/** Locks the turn for a commit that moves it. Throws for an ended turn and for a run that was replaced. */
export function lockTurn(tx: Tx, fence: Fence): Promise<FencedTurn> {
  return checkedTurn(tx, fence, sql`for no key update of t`);
}

/** The same look without the lock, for work that commits later. */
export function readTurn(db: Db, fence: Fence): Promise<FencedTurn> {
  return checkedTurn(db, fence, sql``);
}

/** Session of a turn whose end the current generation has written, where this run belongs to it; else null. */
export async function sessionEndedBy(db: Db, fence: Fence): Promise<string | null> {
  const [row] = await db
    .select({ session: turn.session })
    .from(turn)
    .innerJoin(turnRun, and(eq(turnRun.turn, turn.id), eq(turnRun.generation, turn.generation)))
    .where(and(eq(turn.id, fence.turn), eq(turnRun.run, fence.run), eq(turn.recordedBy, 'turn')));
  return row?.session ?? null;
}

async function checkedTurn(db: Db | Tx, fence: Fence, lock: SQL): Promise<FencedTurn> {
  const { rows } = await db.execute<
    FencedTurn & { ended: boolean; runGeneration: number | null } & Record<string, unknown>
  >(sql`
    select t.id, t.session, s.stream, s.tenant, t.generation, t.head, t.base_head as "baseHead",
           s.head as "sessionHead", s.workspace_path as "workspacePath", t.input, t.origin, t.ended_at is not null as ended,
           r.generation as "runGeneration"
    from pawl.turn t join pawl.session s on s.id = t.session
    left join pawl.turn_run r on r.turn = t.id and r.run = ${fence.run}
    where t.id = ${fence.turn} ${lock}`);
  const row = rows[0];
  if (!row || row.ended) throw new FenceRefused('turn.already_ended');
  if (row.runGeneration !== row.generation) throw new FenceRefused('turn.fenced');
  return row;
}

/** Locks an open turn for recovery, which has no engine run of its own. Null: it has ended. */
export async function lockOpenTurn(tx: Tx, turnId: string): Promise<FencedTurn | null> {
  const { rows } = await tx.execute<FencedTurn & Record<string, unknown>>(sql`
    select t.id, t.session, s.stream, s.tenant, t.generation, t.head, t.base_head as "baseHead",
           s.head as "sessionHead", s.workspace_path as "workspacePath", t.input, t.origin
    from pawl.turn t join pawl.session s on s.id = t.session
    where t.id = ${turnId} and t.ended_at is null for no key update of t`);
  return rows[0] ?? null;
}
