import type { GoalOrder, OrderAnswer, WokenGoal } from '../goal-orders.ts';
import type { CreatedGoal } from '../new-goal.ts';
import type { Runs } from '../runs.ts';
import {
  cancelGoalRoute,
  createGoalRoute,
  editGoalRoute,
  firingsRoute,
  getGoalRoute,
  listGoalsRoute,
  pauseGoalRoute,
  resumeGoalRoute,
  wakeGoalRoute,
  whyGoalRoute,
} from './goal-routes.ts';
import type { App } from './open-app.ts';
import { refuse } from './problem.ts';

export function addGoalRoutes(app: App, runs: Runs, tenant: string): void {
  app.openapi(createGoalRoute, async (c) => {
    const key = c.req.valid('header')['Idempotency-Key'];
    const { by = 'api', ...body } = c.req.valid('json');
    const { goal: id, session, isNew } = accepted(await runs.createGoal({ tenant, key, by, ...body }));
    c.header('location', `/v1/goals/${id}`);
    return c.json({ id, session, isNew }, isNew ? 201 : 200);
  });
  app.openapi(listGoalsRoute, async (c) => {
    const open = c.req.valid('query').open === 'true';
    const [goals, recurring] = await Promise.all([runs.goals(tenant, { open }), runs.recurringGoals(tenant, { open })]);
    return c.json({ goals, recurring }, 200);
  });
  app.openapi(getGoalRoute, async (c) => c.json((await runs.goal(tenant, c.req.valid('param').id)) ?? unknown(), 200));
  app.openapi(firingsRoute, async (c) =>
    c.json((await runs.recurring(tenant, c.req.valid('param').id)) ?? unknown(), 200),
  );
  app.openapi(whyGoalRoute, async (c) => {
    const { id } = c.req.valid('param');
    const why = (await runs.goal(tenant, id)) && (await runs.why(tenant, id));
    return c.json(why ?? unknown(), 200);
  });
  addOrders(app, runs, tenant);
  app.openapi(wakeGoalRoute, async (c) => {
    const { by = 'api', ...request } = c.req.valid('json');
    return c.json(woken(await runs.wakeGoal(tenant, c.req.valid('param').id, { by, ...request })), 200);
  });
}

function addOrders(app: App, runs: Runs, tenant: string): void {
  const tell = async (id: string, order: Omit<GoalOrder, 'by'> & { readonly by?: string | undefined }) =>
    ordered(await runs.orderGoal(tenant, id, { ...order, by: order.by ?? 'api' }));
  app.openapi(pauseGoalRoute, async (c) =>
    c.json(await tell(c.req.valid('param').id, { kind: 'pause', ...c.req.valid('json') }), 200),
  );
  app.openapi(resumeGoalRoute, async (c) =>
    c.json(await tell(c.req.valid('param').id, { kind: 'resume', ...c.req.valid('json') }), 200),
  );
  app.openapi(cancelGoalRoute, async (c) =>
    c.json(await tell(c.req.valid('param').id, { kind: 'cancel', ...c.req.valid('json') }), 200),
  );
  app.openapi(editGoalRoute, async (c) =>
    c.json(await tell(c.req.valid('param').id, { kind: 'edit', ...c.req.valid('json') }), 200),
  );
}

function ordered(answer: OrderAnswer | null): { readonly status: string } {
  switch (answer?.kind) {
    case 'done':
      return { status: answer.status };
    case 'final':
      return refuse('goal-final', `The goal is ${answer.status}: begin another one.`);
    case 'conflict':
      return refuse('key-conflict', 'This id was used for another command: take another one.');
    case 'refused':
      return refuse('goal-refused', answer.why);
    case undefined:
      return unknown();
  }
}

function woken(answer: WokenGoal | 'recurring' | null): WokenGoal {
  if (answer === 'recurring')
    return refuse(
      'goal-refused',
      'A recurring goal has no round to wake: wake one of its goals, which its firings name.',
    );
  return answer ?? unknown();
}

function accepted(created: CreatedGoal): CreatedGoal & { readonly kind: 'accepted' } {
  switch (created.kind) {
    case 'accepted':
      return created;
    case 'conflict':
      return refuse('key-conflict', `This key has brought ${created.goal}: send the same body again, or another key.`);
    case 'another_is_open':
      return refuse('goal-open', 'The session has an open goal: edit or cancel that one, or take another session.');
    case 'unknown_session':
      return refuse('unknown-session', 'Check the id; a job names its session, and sessions of others are not shown.');
    case 'unknown_agent':
      return refuse('unknown-agent', `Name one of: ${created.known.join(', ')}.`);
    case 'refused':
      return refuse('goal-refused', created.why);
  }
}

function unknown(): never {
  refuse('unknown-goal', 'Check the id; goals of others are not shown.');
}
