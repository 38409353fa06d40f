import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { and, asc, eq } from 'drizzle-orm';
import { signalGoal } from '../../activities/engine/temporal-engine.ts';
import { storeGoal } from '../../activities/store/goals.ts';
import { agent, goal, type GoalCheck, goalRound, input, session, wake } from '../../activities/store/schema.ts';
import { contentHash, rootHash } from '../../activities/store/hash.ts';
import { newId } from '../../activities/store/ids.ts';
import type { GoalBudget, GoalState } from '../../workflows/core/goal/goal-state.ts';
import { goalState, goalWorkflowId } from '../../workflows/messages.ts';
import type { JournalEvent } from '../../workflows/core/journal.ts';
import { say, type ChatRequest, type Reply } from '../../testing/index.ts';
import { userTexts } from './conversations.ts';
import type { TestHouse } from './test-house.ts';
import { until } from './until.ts';

type At = Pick<TestHouse, 'house' | 'events'>;

const BUDGET: GoalBudget = { turns: 10, tokens: 100_000, microUsd: null, runningMs: 3_600_000 };

export interface TestGoal {
  readonly id: string;
  readonly session: string;
  readonly workspace: string;
}

export interface GoalWishes {
  readonly checks?: readonly (string | GoalCheck)[];
  readonly agent?: string;
  readonly budget?: Partial<GoalBudget>;
  readonly sceptics?: number;
}

/** A session with a goal and nothing else; its workspace is a folder of its own. */
export async function beginGoal(at: TestHouse, objective: string, wishes: GoalWishes = {}): Promise<TestGoal> {
  const { db } = at.house.database;
  const definition = at.house.catalogue.agent(wishes.agent);
  const folder = `g-${randomBytes(6).toString('hex')}`;
  mkdirSync(join(at.workspaces, folder), { recursive: true });
  const found = at.house.catalogue.workspace(folder, folder);
  if (!definition || !found.ok) throw new Error('the test names no usable agent or workspace');
  const ids = { goal: newId('goal'), session: newId('ses') };
  const hash = contentHash(definition);
  await db.insert(agent).values({ hash, name: definition.name, definition }).onConflictDoNothing();
  await db.insert(session).values({
    id: ids.session,
    tenant: 'default',
    stream: ids.session,
    agent: hash,
    head: rootHash('default', ids.session),
    workspaceKind: found.workspace.kind,
    workspacePath: found.workspace.path,
    workspaceQueue: found.workspace.queue,
  });
  const stored = await storeGoal(db, {
    id: ids.goal,
    tenant: 'default',
    session: ids.session,
    objective,
    checks: (wishes.checks ?? []).map((check) =>
      typeof check === 'string' ? { command: check, timeoutSeconds: 20 } : check,
    ),
    judge: {},
    budget: { ...BUDGET, ...wishes.budget },
    sceptics: wishes.sceptics ?? 1,
    by: 'tester',
    fingerprint: 'f',
  });
  if (stored !== 'stored') throw new Error(stored);
  await signalGoal(at.house.temporal, at.house.taskQueue, ids.goal);
  return { id: ids.goal, session: ids.session, workspace: join(at.workspaces, folder) };
}

/** The goal's row once it has that status. */
export async function goalIs(at: At, id: string, status: string, limitMs = 30_000) {
  let seen = '';
  try {
    return await until(
      `goal ${id} is ${status}`,
      async () => {
        const [row] = await at.house.database.db.select().from(goal).where(eq(goal.id, id));
        seen = row?.status ?? 'unknown';
        return row?.status === status ? row : null;
      },
      limitMs,
    );
  } catch (error) {
    throw new Error(`${(error as Error).message}; it is ${seen}`, { cause: error });
  }
}

export async function liveState(at: At, id: string): Promise<GoalState> {
  return await until(`goal ${id} answers`, () =>
    at.house.temporal.workflow.getHandle(goalWorkflowId(id)).query(goalState),
  );
}

/** Statuses as the event stream tells them, in their order. */
export async function movesOf(at: At, { id, session: owner }: Pick<TestGoal, 'id' | 'session'>): Promise<string[]> {
  const events = (await at.events(owner)).map(({ event }) => event);
  return events.flatMap((event: JournalEvent) =>
    (event.kind === 'goal.moved' || event.kind === 'goal.ended') && event.goal === id
      ? [`${event.reason}${event.detail === null ? '' : `(${event.detail})`} by ${event.signal}`]
      : [],
  );
}

export async function foundOf(at: At, { id, session: owner }: Pick<TestGoal, 'id' | 'session'>): Promise<string[]> {
  const events = (await at.events(owner)).map(({ event }) => event);
  return events.flatMap((event) =>
    event.kind === 'goal.judged' && event.goal === id ? [`${event.source} ${event.found}`] : [],
  );
}

export async function roundsOf(at: At, id: string) {
  return await at.house.database.db
    .select({
      round: goalRound.round,
      status: input.status,
      kind: input.kind,
      limits: goalRound.limits,
      body: input.body,
    })
    .from(goalRound)
    .innerJoin(input, eq(input.id, goalRound.input))
    .where(eq(goalRound.goal, id))
    .orderBy(asc(goalRound.round));
}

export async function wakesOf(at: At, id: string) {
  return await at.house.database.db
    .select()
    .from(wake)
    .where(and(eq(wake.goal, id)))
    .orderBy(asc(wake.createdAt));
}

/** Who is asked, told by the instructions: the agent, its judge, or a sceptic. */
export function roleOf(request: ChatRequest): 'agent' | 'judge' | 'sceptic' {
  const said = request.messages.find(({ role }) => role === 'system' || role === 'developer')?.content;
  const system = typeof said === 'string' ? said : '';
  if (system.startsWith('You judge whether')) return 'judge';
  return system.startsWith('A judge holds') ? 'sceptic' : 'agent';
}

/** The directives that a request still shows. */
export function directives(request: ChatRequest): string[] {
  return userTexts(request).filter((text) => text.startsWith('This is round'));
}

const NOTHING = { evidence: 'seen', gap: '', next_step: '', blocker: '', wait_until: '', wait_event: '' };

export function verdict(decision: string, more: Partial<typeof NOTHING> = {}): Reply {
  return say(JSON.stringify({ decision, ...NOTHING, ...more }));
}

export function vote(choice: 'approve' | 'refute', confidence: 'high' | 'low' = 'high'): Reply {
  return say(JSON.stringify({ vote: choice, confidence, evidence: `I ${choice}.` }));
}
