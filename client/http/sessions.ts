import type { Runs } from '../runs.ts';
import type { App } from './open-app.ts';
import { refuse } from './problem.ts';
import { planRoute, reportRoute } from './routes.ts';

export function addSessionRoutes(app: App, runs: Runs, tenant: string): void {
  app.openapi(planRoute, async (c) => {
    const { plan, by = 'api' } = c.req.valid('json');
    const state = await runs.plan(tenant, c.req.valid('param').id, { plan, by });
    return c.json(state ?? unknownSession(), 200);
  });
  app.openapi(reportRoute, async (c) => {
    const { id, name } = c.req.valid('param');
    const { by = 'api', ...rest } = c.req.valid('json');
    return c.json((await runs.report(tenant, id, { ...rest, name, by })) ?? unknownSession(), 200);
  });
}

export function unknownSession(): never {
  refuse('unknown-session', 'Check the id; a job names its session, and sessions of others are not shown.');
}
