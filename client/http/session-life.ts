import { CLOSED_WORDS } from '../faults.ts';
import { busyWords, NO_MESSAGE } from '../refused-words.ts';
import type { Runs } from '../runs.ts';
import type { App } from './open-app.ts';
import { refuse } from './problem.ts';
import {
  archivedRoute,
  forkRoute,
  messagesRoute,
  rewindRoute,
  sessionRoute,
  sessionsRoute,
  titleRoute,
} from './session-life-routes.ts';
import { unknownSession } from './sessions.ts';

export function addSessionLifeRoutes(app: App, runs: Runs, tenant: string): void {
  addReads(app, runs, tenant);
  addBranching(app, runs, tenant);
  app.openapi(titleRoute, async (c) => {
    const { by = 'api', title } = c.req.valid('json');
    if (!(await runs.rename(tenant, c.req.valid('param').id, { title, by }))) unknownSession();
    return c.json({ title }, 200);
  });
  app.openapi(archivedRoute, async (c) => {
    const { by = 'api', archived, why } = c.req.valid('json');
    const answer = (await runs.archive(tenant, c.req.valid('param').id, { archived, by, why })) ?? unknownSession();
    if (answer.kind === 'agent_ended') return refuse('agent-ended', CLOSED_WORDS.agent_ended);
    if (answer.kind === 'goal_open') return refuse('goal-open', busyWords(answer));
    if (answer.kind !== 'done') return refuse('session-busy', busyWords(answer));
    return c.json({ archived, changed: answer.changed }, 200);
  });
}

function addReads(app: App, runs: Runs, tenant: string): void {
  app.openapi(sessionsRoute, async (c) => c.json(await runs.sessions(tenant, c.req.valid('query')), 200));
  app.openapi(sessionRoute, async (c) =>
    c.json((await runs.session(tenant, c.req.valid('param').id)) ?? unknownSession(), 200),
  );
  app.openapi(messagesRoute, async (c) =>
    c.json((await runs.messages(tenant, c.req.valid('param').id, c.req.valid('query'))) ?? unknownSession(), 200),
  );
}

function addBranching(app: App, runs: Runs, tenant: string): void {
  app.openapi(forkRoute, async (c) => {
    const { by = 'api', ...wish } = c.req.valid('json');
    const forked = (await runs.fork(tenant, c.req.valid('param').id, { ...wish, by })) ?? unknownSession();
    switch (forked.kind) {
      case 'forked': {
        const { kind: _, ...answer } = forked;
        return c.json(answer, answer.isNew ? 201 : 200);
      }
      case 'conflict':
        return refuse('input-conflict', `Your id names fork ${forked.session} of another message: take another id.`);
      case 'unknown_message':
        return refuse('unknown-message', NO_MESSAGE);
    }
  });
  app.openapi(rewindRoute, async (c) => {
    const { by = 'api', ...wish } = c.req.valid('json');
    const rewound = (await runs.rewind(tenant, c.req.valid('param').id, { ...wish, by })) ?? unknownSession();
    switch (rewound.kind) {
      case 'rewound': {
        const { kind: _, ...answer } = rewound;
        return c.json(answer, 200);
      }
      case 'busy':
        return refuse('session-busy', busyWords(rewound));
      case 'unknown_message':
        return refuse('unknown-message', NO_MESSAGE);
    }
  });
}
