import { CLOSED_WORDS } from '../faults.ts';
import type { InputAnswer } from '../inputs.ts';
import { refusedInputWords } from '../refused-words.ts';
import type { Runs } from '../runs.ts';
import { editInputRoute, inputsRoute, lockRoute, sendRoute, unlockRoute, withdrawRoute } from './input-routes.ts';
import type { App } from './open-app.ts';
import { CLOSED, refuse } from './problem.ts';
import { unknownSession } from './sessions.ts';

export function addInputRoutes(app: App, runs: Runs, tenant: string): void {
  addSend(app, runs, tenant);
  app.openapi(inputsRoute, async (c) => {
    const { waiting, ...page } = c.req.valid('query');
    const found = await runs.inputs(tenant, c.req.valid('param').id, { ...page, waiting: waiting === 'true' });
    return c.json(found ?? unknownSession(), 200);
  });
  app.openapi(editInputRoute, async (c) => {
    const { by = 'api', text } = c.req.valid('json');
    return c.json(changed(await runs.editInput(tenant, c.req.valid('param').id, { text, by })), 200);
  });
  app.openapi(withdrawRoute, async (c) => {
    const { by = 'api', why } = c.req.valid('json');
    return c.json(changed(await runs.withdrawInput(tenant, c.req.valid('param').id, { by, why })), 200);
  });
  app.openapi(lockRoute, async (c) => {
    const { by = 'api' } = c.req.valid('json');
    const answer = await runs.lockInput(tenant, c.req.valid('param').id, { by });
    return c.json(answer?.kind === 'locked_now' ? { until: answer.until } : refuseChange(answer), 200);
  });
  app.openapi(unlockRoute, async (c) => {
    const { by = 'api' } = c.req.valid('json');
    return c.json(changed(await runs.unlockInput(tenant, c.req.valid('param').id, { by })), 200);
  });
}

function addSend(app: App, runs: Runs, tenant: string): void {
  app.openapi(sendRoute, async (c) => {
    const { by = 'api', ...said } = c.req.valid('json');
    const sent = await runs.send(tenant, c.req.valid('param').id, { ...said, by });
    switch (sent?.kind) {
      case 'accepted': {
        const { input, session, isNew } = sent;
        return c.json({ id: input, session, isNew }, isNew ? 201 : 200);
      }
      case 'conflict':
        return refuse('input-conflict', 'Send the same text again, or another id for another input.');
      case 'archived':
      case 'agent_ended':
        return refuse(CLOSED[sent.kind], CLOSED_WORDS[sent.kind]);
      case 'full':
        return refuse('queue-full', `${sent.waiting} inputs wait in this session: send it again when fewer do.`);
      case undefined:
        return unknownSession();
    }
  });
}

function changed(answer: InputAnswer | null): { changed: boolean } {
  if (answer?.kind === 'changed') return { changed: true };
  return answer?.kind === 'before' ? { changed: false } : refuseChange(answer);
}

function refuseChange(answer: Exclude<InputAnswer, { kind: 'changed' | 'before' }> | null): never {
  if (answer === null) return refuse('unknown-input', 'Check the id; inputs of others are not shown.');
  return refuse(answer.kind === 'locked' ? 'input-locked' : 'input-taken', refusedInputWords(answer));
}
