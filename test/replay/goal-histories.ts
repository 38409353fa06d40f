import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, type ChatRequest, hold, paced, type Reply, say } from '../../testing/index.ts';
import { goalWorkflowId, look } from '../../workflows/messages.ts';
import { newestUserText, userTexts } from '../support/conversations.ts';
import { closedStatus } from '../support/engine-facts.ts';
import { beginGoal, goalIs, roleOf, verdict, vote } from '../support/goals.ts';
import type { TestHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const TENANT = 'default';
const stop = hold();

/** What is said in the goals of these histories; null: something else is talked about. */
export function playGoals(request: ChatRequest): Reply | null {
  const said = userTexts(request).join('\n');
  const name = /GOAL (\w+)\./.exec(said)?.[1];
  if (name === undefined) return null;
  switch (roleOf(request)) {
    case 'judge':
      return name === 'worked' ? verdict('continue', { gap: 'a part is missing' }) : verdict('candidate_complete');
    case 'sceptic':
      return vote('approve');
    case 'agent':
      return name === 'worked' ? work(request) : name === 'continued' ? wait(request) : say('Done.');
  }
}

const hasActed = (request: ChatRequest) => request.messages.at(-1)?.role === 'tool';

function wait(request: ChatRequest): Reply {
  const claim = { status: 'waiting', note: 'for more', event: 'more' };
  return hasActed(request) ? say('I wait.') : callTools([{ name: 'update_goal', arguments: claim }]);
}

/** Goes on; waits for an event; is paused in the middle; and reaches what its check looks for. */
function work(request: ChatRequest): Reply {
  const round = Number(/^This is round (\d+) /.exec(newestUserText(request))?.[1]);
  if (round === 1) return say('A part is done.');
  if (round === 2) return wait(request);
  if (round === 3) return paced(say('I go on.'), { hold: stop });
  return hasActed(request)
    ? say('All is done.')
    : callTools([{ name: 'write_file', arguments: { path: 'done', content: 'x' } }]);
}

/** Goals whose histories are kept: the name of each, and what its workflow ids hold. */
export async function goalHistories(at: TestHouse): Promise<[string, string][]> {
  const { database, temporal, taskQueue, catalogue, listener } = at.house;
  const runs = createRuns({ database, temporal, taskQueue, catalogue, listener, engineLimitMs: 30_000 });
  return await Promise.all([worked(at, runs), judged(at), continued(at, runs), cancelled(at), scheduled(at, runs)]);
}

async function worked(at: TestHouse, runs: Runs): Promise<[string, string]> {
  const { id, session } = await beginGoal(at, 'GOAL worked. Do it.', { checks: ['test -e done'] });
  await goalIs(at, id, 'waiting(event)');
  await runs.wakeGoal(TENANT, id, { id: 'w', event: 'more', by: 'ci' });
  await stop.reached;
  await runs.orderGoal(TENANT, id, { kind: 'pause', by: 'a' });
  stop.release();
  await at.ended(session, 3);
  await runs.orderGoal(TENANT, id, { kind: 'resume', by: 'a' });
  await goalIs(at, id, 'complete');
  await closedStatus(at, goalWorkflowId(id));
  return ['worked', id];
}

async function judged(at: TestHouse): Promise<[string, string]> {
  const { id } = await beginGoal(at, 'GOAL judged. Do it.');
  await goalIs(at, id, 'complete');
  await closedStatus(at, goalWorkflowId(id));
  return ['judged', id];
}

async function continued(at: TestHouse, runs: Runs): Promise<[string, string]> {
  const { id } = await beginGoal(at, 'GOAL continued. Do it.');
  await goalIs(at, id, 'waiting(event)');
  const handle = at.house.temporal.workflow.getHandle(goalWorkflowId(id));
  const { runId } = await handle.describe();
  await until('a new run has taken over', async () => {
    await Promise.all(Array.from({ length: 60 }, () => handle.signal(look)));
    return (await handle.describe()).runId !== runId;
  });
  await runs.orderGoal(TENANT, id, { kind: 'cancel', by: 'a' });
  await closedStatus(at, goalWorkflowId(id));
  return ['continued', id];
}

async function cancelled(at: TestHouse): Promise<[string, string]> {
  const { id } = await beginGoal(at, 'GOAL continued. Do it, too.');
  await goalIs(at, id, 'waiting(event)');
  await at.house.temporal.workflow.getHandle(goalWorkflowId(id)).cancel();
  await goalIs(at, id, 'cancelled');
  await closedStatus(at, goalWorkflowId(id));
  return ['cancelled', id];
}

async function scheduled(at: TestHouse, runs: Runs): Promise<[string, string]> {
  mkdirSync(join(at.workspaces, 'each'), { recursive: true });
  const goal = { objective: 'GOAL scheduled. Do it.', workspace: 'each', schedule: { everySeconds: 1 } };
  const created = await runs.createGoal({ tenant: TENANT, key: 'scheduled', by: 'a', ...goal });
  if (created.kind !== 'accepted') throw new Error(created.kind);
  const started = await until('a firing has begun a goal', async () => {
    const firings = (await runs.recurring(TENANT, created.goal))?.firings ?? [];
    return firings.find(({ outcome }) => outcome === 'started')?.goal;
  });
  await runs.orderGoal(TENANT, created.goal, { kind: 'cancel', by: 'a' });
  await goalIs(at, started, 'complete');
  await closedStatus(at, goalWorkflowId(started));
  return ['scheduled', created.goal];
}
