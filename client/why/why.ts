import type { Db } from '../../activities/store/database.ts';
import { agentsOfTurn } from '../agents.ts';
import type { ClientEngine } from '../engine.ts';
import { EngineAway, onStore } from '../faults.ts';
import type { JobTurnEnd } from '../job.ts';
import { endOf } from '../read-jobs.ts';
import { adviceOf } from './advice.ts';
import { chainOf } from './chain.ts';
import { doingNow } from './doing.ts';
import { goalAdvice } from './goal-advice.ts';
import type { GoalMove } from './goal-words.ts';
import {
  findSubject,
  layerEnds,
  openStreams,
  openTurnOf,
  queued,
  type Subject,
  unanswered,
  unknownEffects,
} from './facts.ts';
import { goesOnAfter, goingOnAdvice, spentAdvice, timesBefore } from './goes-on.ts';
import type { Doing, GoesOn, UnknownEffect, Waiting, Why } from './report.ts';

interface WhyDeps {
  readonly db: Db;
  readonly engine: ClientEngine;
  /** Where session workflows run. */
  readonly taskQueue: string;
}

/** Why a turn, a job or a session is as it is, and what to do now. Null where the tenant has none of that id. */
export async function whyOf(deps: WhyDeps, tenant: string, id: string): Promise<Why | null> {
  const subject = await onStore(() => findSubject(deps.db, tenant, id));
  if (!subject) return null;
  return subject.turn
    ? await whyOfTurn(deps, { ...subject, tenant, turn: subject.turn })
    : await whyWithoutTurn(deps, subject);
}

interface TurnSubject extends Subject {
  readonly tenant: string;
  readonly turn: NonNullable<Subject['turn']>;
}

async function whyOfTurn(deps: WhyDeps, subject: TurnSubject): Promise<Why> {
  const { db, engine } = deps;
  const { tenant, turn: row } = subject;
  const end = endOf(row);
  const doing = end ? null : doingNow(await unlessAway(() => engine.activityOf(row.id)));
  const [ends, streams, queue, waitsFor, unknown, goesOn, before, agents] = await onStore(() =>
    Promise.all([
      layerEnds(db, row.id, subject.session),
      openStreams(db, row.id),
      queued(db, subject.session),
      unanswered(db, tenant, row.id),
      unknownEffects(db, row.id, end !== null),
      goesOnAfter(db, row.id),
      timesBefore(db, row.input),
      agentsOfTurn(db, row.id),
    ]),
  );
  const goal = ends.goal?.event ?? null;
  const advice = [
    ...goalAdvice(goal, end === null),
    ...unknown.map(unknownAdvice),
    ...waitsFor.map((wait) => waitingAdvice(subject.session, wait)),
    ...(end
      ? isForGoal(end, goal)
        ? []
        : endAdvice(end, goesOn, before)
      : doing
        ? [await doingAdvice(deps, doing)]
        : []),
  ];
  return {
    id: subject.id,
    session: subject.session,
    job: subject.job,
    turn: row.id,
    state: end ? 'ended' : 'running',
    chain: chainOf({ ends, streams, end, queue, doing: doing?.words ?? null }),
    end,
    doing,
    goesOn,
    waitsFor,
    unknownEffects: unknown,
    agents,
    advice,
  };
}

/** The answer of a turn is no answer yet while its goal is open. */
function isForGoal({ reason }: JobTurnEnd, goal: GoalMove | null): boolean {
  return reason === 'COMPLETED' && goal?.kind === 'goal.moved';
}

function endAdvice(end: JobTurnEnd, goesOn: GoesOn | null, before: Parameters<typeof spentAdvice>[1]): string[] {
  if (goesOn) return [goingOnAdvice(goesOn)];
  return [adviceOf(end).now, spentAdvice(end, before)].filter((line) => line !== null);
}

async function whyWithoutTurn(deps: WhyDeps, subject: Subject): Promise<Why> {
  const isQueued = subject.input?.status === 'queued' || subject.input?.status === 'forwarded';
  return {
    id: subject.id,
    session: subject.session,
    job: subject.job,
    turn: null,
    state: isQueued ? 'queued' : 'never_ran',
    chain: [],
    end: null,
    doing: null,
    goesOn: null,
    waitsFor: [],
    unknownEffects: [],
    agents: [],
    advice: isQueued
      ? await queueAdvice(deps, subject)
      : [NEVER_RAN[subject.input?.status ?? 'none'] ?? NEVER_RAN.none],
  };
}

const NEVER_RAN: Readonly<Record<string, string>> & { readonly none: string } = {
  withdrawn: 'It was withdrawn before it began: hand it in again if it is still wanted.',
  dropped_by_cancel: 'It was dropped with a cancelled turn: hand it in again if it is still wanted.',
  hook_blocked: 'A hook kept it from beginning: look at what the hook says; it is yours.',
  none: 'Nothing was handed in for it.',
};

async function queueAdvice(deps: WhyDeps, subject: Subject): Promise<string[]> {
  const { db, taskQueue } = deps;
  const [open, queue] = await onStore(() =>
    Promise.all([openTurnOf(db, subject.session), queued(db, subject.session)]),
  );
  const workers = await unlessAway(() => deps.engine.workersOn(taskQueue));
  if (workers === null) return [ENGINE_AWAY];
  if (workers === 0) return [noWorker(taskQueue)];
  if (open !== null) return [`Nothing: it begins when turn ${open} has ended.`];
  if (queue.held > 0) return ['Somebody edits it: it begins when the edit is over, at the latest after 5 minutes.'];
  return ['Nothing: it begins within seconds; what gets lost on the way is told again every 15 seconds.'];
}

const ENGINE_AWAY = 'Bring Temporal back: the work goes on by itself then.';

function noWorker(queue: string): string {
  return `No worker asks for work on ${queue}: start one with \`pawl worker\`, or \`pawl up\`.`;
}

async function doingAdvice(deps: WhyDeps, { kind, until }: Doing): Promise<string> {
  if (kind === 'not_known' || kind === 'retries') {
    const workers = await unlessAway(() => deps.engine.workersOn(deps.taskQueue));
    if (workers === null) return ENGINE_AWAY;
    if (workers === 0) return noWorker(deps.taskQueue);
  }
  switch (kind) {
    case 'works':
      return 'Nothing: it works. `pawl events` shows it live, `pawl cancel` ends it.';
    case 'rests':
      return `Nothing: it goes on by itself at ${until}. \`pawl cancel\` ends it now.`;
    case 'waits':
      return 'It goes on with the answer.';
    case 'retries':
      return 'Nothing: it is tried again by itself. Look into the log of the worker if that does not end.';
    case 'lost':
      return 'Nothing: recovery writes its end within a minute, as long as a worker runs.';
    case 'not_known':
      return 'Ask again in a moment.';
  }
}

function waitingAdvice(session: string, { id, tool, for: what, until }: Waiting): string {
  const by = until === null ? '' : ` until ${until}`;
  switch (what) {
    case 'approval':
      return `Decide on ${tool}${by}: \`pawl approve ${id}\` or \`pawl reject ${id}\`.`;
    case 'outcome':
      return `Say what became of ${tool}${by}: \`pawl outcome ${id} happened\`, \`absent\` or \`again\`.`;
    case 'input':
      return `Answer its question${by}: \`pawl reject ${id} -m "…"\`.`;
    case 'event':
      return `Report its event${by}: \`pawl report ${session} <event>\`; \`pawl approvals\` names it.`;
  }
}

function unknownAdvice({ tool, key, note }: UnknownEffect): string {
  const about = note === null ? '' : ` (${note})`;
  return `Find out what ${tool}${about} did: whether call ${key.slice(0, 12)} took effect is not known, and it is not repeated.`;
}

/** Null: the engine does not answer. */
async function unlessAway<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof EngineAway) return null;
    throw error;
  }
}
