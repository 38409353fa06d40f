import { OpenAPIHono } from '@hono/zod-openapi';
import type { ErrorHandler, MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { HTTPException } from 'hono/http-exception';
import type { Logger } from 'pino';
import { BadId, BadPosition, EngineAway, SessionClosed, StoreAway } from '../faults.ts';
import type { Runs } from '../runs.ts';
import { addApprovalRoutes } from './approvals.ts';
import { addGoalRoutes } from './goals.ts';
import { guardHost } from './guard.ts';
import { addInputRoutes } from './inputs.ts';
import { addJobRoutes } from './jobs.ts';
import type { App } from './open-app.ts';
import { CLOSED, problem } from './problem.ts';
import { addSessionLifeRoutes } from './session-life.ts';
import { addSessionRoutes } from './sessions.ts';
import { refuseFault } from './refuse-fault.ts';

export interface AppOptions {
  /** Whose jobs these are; `default` if left out. */
  readonly tenant?: string;
  /** Host names besides localhost under which this API may be reached. */
  readonly hosts?: readonly string[];
  /** 15 s if left out. */
  readonly heartbeatMs?: number;
  readonly log?: Pick<Logger, 'error'>;
}

const BODY_MAX_BYTES = 1_048_576;
const HEARTBEAT_MS = 15_000;

/** The HTTP API over the facade. Every error is a problem document without stack or secret. */
export function createApp(runs: Runs, options: AppOptions = {}): App {
  const app = new OpenAPIHono({ defaultHook: refuseFault });
  const tooLarge = () =>
    problem('too-large', `A body may have ${BODY_MAX_BYTES} bytes: put long material into the workspace.`);
  app.use(guardHost(options.hosts));
  app.use('/v1/*', bodyLimit({ maxSize: BODY_MAX_BYTES, onError: tooLarge }));
  app.use('/v1/*', requireJson);
  const tenant = options.tenant ?? 'default';
  addJobRoutes(app, runs, { tenant, heartbeatMs: options.heartbeatMs ?? HEARTBEAT_MS });
  addApprovalRoutes(app, runs, tenant);
  addSessionRoutes(app, runs, tenant);
  addInputRoutes(app, runs, tenant);
  addSessionLifeRoutes(app, runs, tenant);
  addGoalRoutes(app, runs, tenant);
  app.get('/healthz', async (c) => {
    await runs.check();
    return c.json({ status: 'ok' });
  });
  app.doc31('/openapi.json', {
    openapi: '3.1.0',
    info: { title: 'Pawl', version: '1', description: 'Hand in jobs for agents, and follow them.' },
  });
  for (const [path, allow] of METHODS) {
    app.all(path, (c) => {
      c.header('allow', allow);
      return problem('method-not-allowed', `This address knows ${allow}.`);
    });
  }
  app.notFound(() => problem('not-found', 'See /openapi.json for the addresses of this API.'));
  app.onError(toProblem(options.log));
  return app;
}

const METHODS = [
  ['/v1/jobs', 'GET, POST'],
  ['/v1/jobs/:id', 'GET'],
  ['/v1/jobs/:id/why', 'GET'],
  ['/v1/turns/:session/:n/why', 'GET'],
  ['/v1/jobs/:id/events', 'GET'],
  ['/v1/jobs/:id/cancel', 'POST'],
  ['/v1/approvals', 'GET'],
  ['/v1/approvals/:id', 'POST'],
  ['/v1/goals', 'GET, POST'],
  ['/v1/goals/:id', 'GET, PATCH'],
  ['/v1/goals/:id/why', 'GET'],
  ['/v1/goals/:id/firings', 'GET'],
  ['/v1/goals/:id/pause', 'POST'],
  ['/v1/goals/:id/resume', 'POST'],
  ['/v1/goals/:id/cancel', 'POST'],
  ['/v1/goals/:id/wake', 'POST'],
  ['/v1/sessions/:id/plan', 'PUT'],
  ['/v1/sessions/:id/events/:name', 'POST'],
  ['/v1/sessions', 'GET'],
  ['/v1/sessions/:id', 'GET'],
  ['/v1/sessions/:id/messages', 'GET'],
  ['/v1/sessions/:id/inputs', 'GET, POST'],
  ['/v1/sessions/:id/fork', 'POST'],
  ['/v1/sessions/:id/rewind', 'POST'],
  ['/v1/sessions/:id/title', 'PUT'],
  ['/v1/sessions/:id/archived', 'PUT'],
  ['/v1/inputs/:id', 'PUT'],
  ['/v1/inputs/:id/withdraw', 'POST'],
  ['/v1/inputs/:id/lock', 'PUT'],
  ['/v1/inputs/:id/unlock', 'POST'],
] as const;

/** A page of another site can send any other type without asking the browser for leave. */
const requireJson: MiddlewareHandler = async (c, next) => {
  const type = c.req.header('content-type');
  const length = c.req.header('content-length') ?? c.req.header('transfer-encoding') ?? type ?? '0';
  if (length === '0' || /^application\/(.+\+)?json\b/i.test(type ?? '')) return await next();
  return problem('not-json-type', 'Send the body with Content-Type: application/json.');
};

function toProblem(log: AppOptions['log']): ErrorHandler {
  return (error, c) => {
    if (error instanceof EngineAway) return problem('engine-away', error.message);
    if (error instanceof StoreAway) return problem('store-away', error.message);
    if (error instanceof SessionClosed) return problem(CLOSED[error.why], error.message);
    if (error instanceof BadId) return problem('bad-body', error.message);
    if (error instanceof BadPosition) return problem('bad-position', error.message);
    if (error instanceof HTTPException && error.res) return error.res;
    if (error instanceof HTTPException && error.status === 400) {
      return problem('body-not-json', 'Send one JSON object as the body.');
    }
    if (error instanceof HTTPException && error.status < 500) return problem('bad-request', 'See /openapi.json.');
    log?.error({ err: error, method: c.req.method, path: c.req.path }, 'request failed');
    return problem('internal', 'It is in the log of the server; repeating the request is safe.');
  };
}
