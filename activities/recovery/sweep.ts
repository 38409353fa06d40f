import { and, asc, eq, gt, isNull, sql } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { passOn } from '../agents/cascade.ts';
import { closeForgotten } from '../store/answers.ts';
import { untoldAnswers } from '../store/approvals.ts';
import { askAfterEnds } from '../store/outcomes.ts';
import { dueCancels, untoldEnds } from '../store/sub-agents.ts';
import { untoldGoals } from '../store/goal-look.ts';
import { overdueGoals } from '../store/overdue-goals.ts';
import { unheardSessions } from '../store/joining.ts';
import { isUnlocked, waitsForNextTurn } from '../store/queued.ts';
import { giveUpLostUndos } from '../store/undo.ts';
import { goalWorkflowId, sessionWorkflowId, turnWorkflowId } from '../../workflows/messages.ts';
import { cancel, turn } from '../store/schema.ts';
import { closeLeftStreams } from './close-streams.ts';
import { recoverTurn } from './recover-turn.ts';
import { settleLate } from './settle-late.ts';

export interface Swept {
  readonly told: number;
  readonly recovered: number;
  /** Session whose turn was looked at last, where more are open behind it; null when all have been looked at. */
  readonly after: string | null;
}

const { turnsAtOnce: AT_ONCE } = POLICY.recovery;

/**
 * Finds what a lost notice or a killed process left behind. Waiting sessions and goals are told; those whose workflow
 * is gone, and should have gone on, are started again. Cancels are passed on, waits that nobody answers are closed,
 * sub-agents that are to stop and ends of theirs are passed on, dead turns get their end, effects that nobody could
 * tell about are asked for again. `after` is where the last look at open turns stopped.
 */
export async function sweep(deps: Deps, after: string | null): Promise<Swept> {
  const forgotten = await closeForgotten(deps.database.db, POLICY.waits.keptMs);
  const waiting = [...new Set([...forgotten, ...(await waitingSessions(deps))])];
  for (const session of waiting) await deps.engine.look(session);
  await lookForLostDrivers(deps);
  for (const goal of await untoldGoals(deps.database.db, AT_ONCE)) await deps.engine.lookGoal(goal);
  await lookForLostGoals(deps);
  for (const id of await cancelsUnheard(deps)) await deps.engine.requestCancel(turnWorkflowId(id));
  for (const { turn: id, approval } of await untoldAnswers(deps.database.db, POLICY.recovery.redeliverAfterMs)) {
    await deps.engine.answerWaits(turnWorkflowId(id), approval);
  }
  for (const { turn: id, wait } of await untoldEnds(deps.database.db)) {
    await deps.engine.answerWaits(turnWorkflowId(id), wait);
  }
  await Promise.all((await dueCancels(deps.database.db, 'overdue')).map((due) => passOn(deps, due)));
  const open = await openTurns(deps, after);
  let recovered = 0;
  for (const { id } of open) {
    if (await isStamped(deps, id)) recovered += 1;
  }
  await closeLeftStreams(deps);
  await settleLate(deps);
  await askAfterEnds(deps.database.db, AT_ONCE);
  await giveUpLostUndos(deps.database.db, AT_ONCE);
  deps.reporter.wake();
  const last = open.length === AT_ONCE ? open[open.length - 1] : undefined;
  return { told: waiting.length, recovered, after: last?.session ?? null };
}

/** In the order of their sessions, each of which has at most one: so every one gets its turn, however many there are. */
async function openTurns({ database }: Deps, after: string | null): Promise<{ id: string; session: string }[]> {
  return await database.db
    .select({ id: turn.id, session: turn.session })
    .from(turn)
    .where(and(isNull(turn.endedAt), after === null ? undefined : gt(turn.session, after)))
    .orderBy(asc(turn.session))
    .limit(AT_ONCE);
}

/** What a turn has not taken in is in its driver's hands, and then in its own, as long as there is a driver. */
async function lookForLostDrivers({ database, engine }: Deps): Promise<void> {
  for (const session of await unheardSessions(database.db, POLICY.recovery.redeliverAfterMs, AT_ONCE)) {
    if ((await engine.fateOf(sessionWorkflowId(session))).kind !== 'running') await engine.look(session);
  }
}

/** A goal whose workflow has failed or was terminated is told of nothing more: no round of it runs. */
async function lookForLostGoals({ database, engine }: Deps): Promise<void> {
  for (const goal of await overdueGoals(database.db, AT_ONCE)) {
    if ((await engine.fateOf(goalWorkflowId(goal))).kind !== 'running') await engine.lookGoal(goal);
  }
}

/** One turn that can't be recovered now must not keep the others waiting. */
async function isStamped(deps: Deps, id: string): Promise<boolean> {
  try {
    return (await recoverTurn(deps, id)) === 'stamped';
  } catch (error) {
    deps.log.warn(
      { turn: id, error: error instanceof Error ? error.name : 'unknown' },
      'a turn could not be recovered',
    );
    return false;
  }
}

/** Open turns that somebody wanted cancelled: whoever stored the request may have died before the engine knew. */
async function cancelsUnheard(deps: Deps): Promise<string[]> {
  const rows = await deps.database.db
    .selectDistinct({ turn: cancel.turn })
    .from(cancel)
    .innerJoin(turn, eq(turn.id, cancel.turn))
    .where(
      and(isNull(turn.endedAt), isNull(cancel.answer), sql`${cancel.createdAt} < clock_timestamp() - ${settled()}`),
    );
  return rows.map((row) => row.turn);
}

/** How old a row must be before its notice counts as lost. */
function settled() {
  return sql`make_interval(secs => ${POLICY.recovery.redeliverAfterMs / 1_000})`;
}

/** Sessions with something queued or unacknowledged for 5 s and nothing that runs, or with an input not passed on. */
async function waitingSessions(deps: Deps): Promise<string[]> {
  const after = settled();
  const { rows } = await deps.database.db.execute<{ session: string }>(sql`
    select waiting.session from (
      select session, created_at from pawl.input
      where status = 'queued' and created_at < clock_timestamp() - ${after}
        and ${isUnlocked}
        and (dispatched_at is null or not exists (
          select 1 from pawl.turn where turn.session = input.session and turn.ended_at is null))
        -- No look can move it.
        and not ${waitsForNextTurn}
        -- A sub-agent ends with its first turn.
        and not exists (select from pawl.sub_agent a where a.session = input.session and a.ended_at is not null)
      union all
      select substr(receiver, 9), created_at from pawl.outbox
      where acknowledged_at is null and receiver like 'session:%' and created_at < clock_timestamp() - ${after}
    ) waiting group by session order by min(created_at), session limit ${AT_ONCE}`);
  return rows.map((row) => row.session);
}
