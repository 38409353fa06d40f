import { refuse } from './problem.ts';
import type { App } from './open-app.ts';
import type { Runs } from '../runs.ts';
import { cancelRoute, eventsRoute, getRoute, listRoute, submitRoute, whyJobRoute, whyTurnRoute } from './routes.ts';
import { orNothing, sseBody } from './sse.ts';

interface JobRouteOptions {
  readonly tenant: string;
  readonly heartbeatMs: number;
}

const FIRST_LOOK_MS = 500;

export function addJobRoutes(app: App, runs: Runs, options: JobRouteOptions): void {
  const { tenant } = options;
  addSubmit(app, runs, tenant);
  addEvents(app, runs, options);
  app.openapi(listRoute, async (c) => c.json(await runs.list(tenant, c.req.valid('query')), 200));
  app.openapi(getRoute, async (c) => {
    const job = await runs.get(tenant, c.req.valid('param').id);
    return c.json(job ?? unknownJob(), 200);
  });
  app.openapi(whyJobRoute, async (c) => {
    const why = await runs.why(tenant, c.req.valid('param').id);
    return c.json(why && why.job === why.id ? why : unknownJob(), 200);
  });
  app.openapi(whyTurnRoute, async (c) => {
    const { session, n } = c.req.valid('param');
    const why = await runs.why(tenant, `${session}/${n}`);
    return c.json(
      why ?? refuse('unknown-turn', 'A turn reads <session>/<number>; turns of others are not shown.'),
      200,
    );
  });
  app.openapi(cancelRoute, async (c) => {
    const { by = 'api', ...request } = c.req.valid('json');
    const answer = await runs.cancel(tenant, c.req.valid('param').id, { by, ...request });
    return c.json({ answer: answer ?? unknownJob() }, answer === 'took_request' ? 202 : 200);
  });
}

function addSubmit(app: App, runs: Runs, tenant: string): void {
  app.openapi(submitRoute, async (c) => {
    const key = c.req.valid('header')['Idempotency-Key'];
    const submitted = await runs.submit({ tenant, key, ...c.req.valid('json'), sender: 'api' });
    switch (submitted.kind) {
      case 'accepted': {
        const { job: id, session, isNew } = submitted;
        c.header('location', `/v1/jobs/${id}`);
        return c.json({ id, session, isNew }, isNew ? 201 : 200);
      }
      case 'conflict':
        return refuse('key-conflict', 'Send the same body again, or another key for another job.', {
          job: submitted.job,
        });
      case 'unknown_agent':
        return refuse('unknown-agent', `Name one of: ${submitted.known.join(', ')}.`);
      case 'budget_refused':
        return refuse('budget-refused', submitted.why);
      case 'schema_refused':
        return refuse('schema-refused', submitted.why);
      case 'workspace_refused':
        return refuse('workspace-refused', submitted.why);
    }
  });
}

function addEvents(app: App, runs: Runs, { tenant, heartbeatMs }: JobRouteOptions): void {
  app.openapi(eventsRoute, async (c) => {
    const id = c.req.valid('param').id;
    const position = c.req.valid('header')['Last-Event-ID'] ?? c.req.valid('query').after;
    if (!(await runs.get(tenant, id))) unknownJob();
    const left = new AbortController();
    const events = runs.events(tenant, id, { after: Number(position ?? 0), signal: left.signal, until: 'done' });
    const first = events.next();
    // A position that does not fit shows at once, and so does that nothing is left; else the job may be silent.
    const soon = await orNothing(first, FIRST_LOOK_MS);
    if (soon?.done && position !== undefined) return c.body(null, 204);
    const body = sseBody(events, { first, heartbeatMs, leave: () => left.abort() });
    return c.body(body, 200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache, no-transform' });
  });
}

function unknownJob(): never {
  refuse('unknown-job', 'Check the id; jobs of others are not shown.');
}
