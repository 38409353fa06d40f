import { and, asc, desc, eq, gt, inArray, isNotNull, isNull, ne, sql } from 'drizzle-orm';
import type { Signal } from '../../workflows/core/ends.ts';
import type { EndedTurn, GoalBill } from '../../workflows/core/goal/goal-event.ts';
import type { AwaitedBy, CameWake } from '../../workflows/core/goal/goal-state.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Db } from './database.ts';
import { billOfGoal } from './goal-bill.ts';
import { sha256 } from './hash.ts';
import { runningMsOf } from './running-ms.ts';
import { approval, call, effect, goalRound, input, outbox, turn, wake } from './schema.ts';

/** An ended turn of the goal's session; the claim and the reply still lie in the store. */
export type EndedRow = Omit<EndedTurn, 'reply' | 'claim'> & {
  readonly head: string;
  /** Arguments of the last `update_goal` that was taken. */
  readonly claimed: string | null;
};

export interface GoalLook {
  readonly turns: readonly EndedRow[];
  readonly bill: GoalBill;
  readonly wakes: readonly CameWake[];
  readonly begun: number;
  readonly withdrawn: number | null;
  /** More wakes lie there than one look takes. */
  readonly more: boolean;
}

const TURNS_AT_ONCE = 50;

export interface GoalLookAt {
  readonly goal: string;
  readonly session: string;
  readonly afterTurn: number;
  readonly sinceTurn: number;
}

/** What happened since: the words are acknowledged first, so that what comes meanwhile is told again. */
export async function lookForGoal(db: Db, at: GoalLookAt): Promise<GoalLook> {
  const { goal: id, session, afterTurn } = at;
  await db
    .update(outbox)
    .set({ acknowledgedAt: sql`clock_timestamp()` })
    .where(and(eq(outbox.receiver, `goal:${id}`), isNull(outbox.acknowledgedAt)));
  const turns = await endedTurns(db, id, session, afterTurn);
  const { wakesAtOnce } = POLICY.goal;
  const wakes = await unsettledWakes(db, id, wakesAtOnce + 1);
  return {
    turns,
    bill: await billOfGoal(db, at),
    wakes: wakes.slice(0, wakesAtOnce),
    ...(await newestRound(db, id)),
    more: wakes.length > wakesAtOnce || turns.length === TURNS_AT_ONCE,
  };
}

async function endedTurns(db: Db, id: string, session: string, afterTurn: number): Promise<EndedRow[]> {
  const rows = await db
    .select({ turn, round: goalRound.round })
    .from(turn)
    .leftJoin(goalRound, and(eq(goalRound.input, turn.input), eq(goalRound.goal, id)))
    .where(and(eq(turn.session, session), gt(turn.n, afterTurn), isNotNull(turn.endedAt)))
    .orderBy(asc(turn.n))
    .limit(TURNS_AT_ONCE);
  const ids = rows.map((row) => row.turn.id);
  if (ids.length === 0) return [];
  const [acted, waiting, claims] = await Promise.all([actedIn(db, ids), waitingIn(db, ids), claimsIn(db, ids)]);
  return rows.map(({ turn: row, round }) => {
    return {
      turn: row.id,
      n: row.n,
      round,
      end: { reason: row.endReason, detail: row.endDetail, decidedBy: row.endDecidedBy } as EndedTurn['end'],
      waitsFor: waiting.has(row.id) ? openWait(row) : null,
      limit: row.endDetail === 'budget' ? limitOf(row.endSignal) : null,
      runningMs: runningMsOf(row),
      acted: acted.has(row.id),
      head: row.head,
      claimed: claims.get(row.id) ?? null,
    };
  });
}

/** What the session keeps open after an end BLOCKED, and until when. */
function openWait({ endReason, endedAt }: typeof turn.$inferSelect): AwaitedBy | null {
  if (endReason !== 'BLOCKED' || endedAt === null) return null;
  return { on: 'answer', untilMs: endedAt.getTime() + POLICY.waits.keptMs };
}

function limitOf(signal: Signal | null): EndedTurn['limit'] {
  const limit = signal?.name === 'limit' ? signal.limit : null;
  return limit === 'tokens' || limit === 'usd' ? limit : null;
}

async function actedIn(db: Db, turns: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .selectDistinct({ turn: effect.turn })
    .from(effect)
    .where(and(inArray(effect.turn, [...turns]), ne(effect.effect, 'none'), ne(effect.state, 'intended')));
  return new Set(rows.map((row) => row.turn));
}

async function waitingIn(db: Db, turns: readonly string[]): Promise<Set<string>> {
  const rows = await db
    .selectDistinct({ turn: approval.turn })
    .from(approval)
    .where(and(inArray(approval.turn, [...turns]), isNull(approval.answer)));
  return new Set(rows.map((row) => row.turn));
}

async function claimsIn(db: Db, turns: readonly string[]): Promise<Map<string, string>> {
  const rows = await db
    .select({ turn: call.turn, arguments: call.arguments })
    .from(call)
    .where(and(inArray(call.turn, [...turns]), eq(call.tool, 'update_goal'), eq(call.status, 'ok')))
    .orderBy(asc(call.step), asc(call.ordinal));
  return new Map(rows.map((row) => [row.turn, row.arguments]));
}

async function unsettledWakes(db: Db, id: string, most: number): Promise<CameWake[]> {
  const rows = await db
    .select({ id: wake.id, event: wake.event, source: wake.source })
    .from(wake)
    .where(and(eq(wake.goal, id), isNull(wake.outcome)))
    .orderBy(asc(wake.createdAt), asc(wake.id))
    .limit(most);
  return rows.map((row) => ({
    id: row.id,
    event: row.event === null ? null : eventHash(row.event),
    to: row.source === 'event' ? 'session' : 'goal',
  }));
}

/** An event's name, as a history may hold it. */
export function eventHash(name: string): string {
  return sha256('event', name.replaceAll(/\s+/g, ' ').trim()).slice(0, 16);
}

/** The newest round; `withdrawn` where its directive was taken out of the queue before a turn had it. */
async function newestRound(db: Db, id: string): Promise<Pick<GoalLook, 'begun' | 'withdrawn'>> {
  const [row] = await db
    .select({ round: goalRound.round, status: input.status })
    .from(goalRound)
    .innerJoin(input, eq(input.id, goalRound.input))
    .where(eq(goalRound.goal, id))
    .orderBy(desc(goalRound.round))
    .limit(1);
  const isGone = row?.status === 'withdrawn' || row?.status === 'dropped_by_cancel' || row?.status === 'hook_blocked';
  return { begun: row?.round ?? 0, withdrawn: row && isGone ? row.round : null };
}

/** Arguments of the last `update_goal` of a turn that was taken. */
export async function claimedIn(db: Db, turnId: string): Promise<string | null> {
  return (await claimsIn(db, [turnId])).get(turnId) ?? null;
}

/** Goals that a lost word may have left waiting: an end, a wake, a directive that was withdrawn, or their own start. */
export async function untoldGoals(db: Db, most: number): Promise<string[]> {
  const late = sql`clock_timestamp() - make_interval(secs => ${POLICY.recovery.redeliverAfterMs / 1_000})`;
  const { rows } = await db.execute<{ goal: string }>(sql`
    select distinct untold.goal from (
      select substr(receiver, 6) as goal from pawl.outbox
      where acknowledged_at is null and receiver like 'goal:%' and created_at < ${late}
      union all
      select goal from pawl.wake where outcome is null and created_at < ${late}
        and not exists (select from pawl.goal
          where id = wake.goal and state->'pendingWakes' @> jsonb_build_array(jsonb_build_object('id', wake.id)))
      union all
      select r.goal from pawl.goal_round r join pawl.input i on i.id = r.input join pawl.goal g on g.id = r.goal
      where g.status = 'active' and i.status in ('withdrawn', 'dropped_by_cancel', 'hook_blocked')
        and r.round = (select max(round) from pawl.goal_round where goal = r.goal)
      union all
      select id from pawl.goal g where not is_final and jsonb_array_length(state->'facts') > 0 and created_at < ${late}
    ) untold limit ${most}`);
  return rows.map((row) => row.goal);
}
