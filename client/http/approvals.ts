import type { Runs } from '../runs.ts';
import type { App } from './open-app.ts';
import { refuse } from './problem.ts';
import { answerRoute, approvalsRoute } from './routes.ts';

export function addApprovalRoutes(app: App, runs: Runs, tenant: string): void {
  app.openapi(approvalsRoute, async (c) => c.json({ approvals: await runs.approvals(tenant) }, 200));
  app.openapi(answerRoute, async (c) => {
    const reply = c.req.valid('json');
    const answered = await runs.answer(tenant, c.req.valid('param').id, reply);
    switch (answered?.kind) {
      case 'recorded':
        return c.json({ answer: reply.answer, by: reply.by, isNew: true }, 200);
      case 'answered_before':
        return c.json({ answer: answered.answer, by: answered.by, isNew: false }, 200);
      case 'stale':
        return refuse('approval-stale', STALE[answered.why]);
      case 'misfit':
        return refuse('answer-misfit', answered.asks === 'outcome' ? OUTCOME_ONLY : NO_OUTCOME);
      case undefined:
        return refuse('unknown-approval', 'Check the id; approvals of others are not shown.');
    }
  });
}

const OUTCOME_ONLY = 'The call ran, and nobody knows what became of it: answer happened, absent or again.';
const NO_OUTCOME = 'The call has not run: answer approved, rejected, cancelled or message.';

const STALE = {
  expired:
    'Its time was over before it was answered, and the agent has been told so. An outcome can be answered again once ' +
    'its turn has ended.',
  turn_ended: 'The turn that asked has ended, so the answer would change nothing.',
  moved_on: 'The session has gone on without it, so the call will not run; the agent may ask again.',
  archived: 'Its session is archived and takes nothing: unarchive it first.',
  agent_ended: 'The sub-agent that asked has ended and hears nothing more; whoever started it was told of its end.',
  settled: 'It has become known meanwhile what became of the call; there is nothing left to answer.',
} as const;
