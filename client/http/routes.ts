import { createRoute } from '@hono/zod-openapi';
import { body, json, problems } from './parts.ts';
import {
  AnswerBody,
  AnsweredSchema,
  ApprovalPath,
  ApprovalsSchema,
  CancelBody,
  CancelledSchema,
  EventPath,
  EventsHeaders,
  EventsQuery,
  JobPageSchema,
  JobPath,
  JobWithResult,
  ListQuery,
  PlanBody,
  PlanSchema,
  SessionPath,
  ReportBody,
  ReportedSchema,
  SubmitBody,
  SubmitHeaders,
  SubmittedSchema,
  TurnPath,
} from './schemas.ts';
import { WhySchema } from './why-schema.ts';

export const submitRoute = createRoute({
  method: 'post',
  path: '/v1/jobs',
  operationId: 'submitJob',
  summary: 'Hand in a job',
  description: 'Answered only when the engine has accepted it. The same key with the same body is the same job.',
  request: {
    headers: SubmitHeaders,
    body: body(SubmitBody),
  },
  responses: {
    201: json('The job is accepted', SubmittedSchema),
    200: json('This key had brought the job before', SubmittedSchema),
    ...problems(400, 409, 413, 415, 422),
  },
});

export const listRoute = createRoute({
  method: 'get',
  path: '/v1/jobs',
  operationId: 'listJobs',
  summary: 'Jobs, newest first',
  request: { query: ListQuery },
  responses: { 200: json('One page', JobPageSchema), ...problems(400) },
});

export const getRoute = createRoute({
  method: 'get',
  path: '/v1/jobs/{id}',
  operationId: 'getJob',
  summary: 'A job, its state, and its end once it has one',
  request: { params: JobPath },
  responses: { 200: json('The job', JobWithResult), ...problems(404) },
});

export const whyTurnRoute = createRoute({
  method: 'get',
  path: '/v1/turns/{session}/{n}/why',
  operationId: 'whyTurn',
  summary: 'Why a turn is as it is, and what to do now',
  description: 'Ids, codes and fixed sentences only: no text of a ticket, a model or a tool.',
  request: { params: TurnPath },
  responses: { 200: json('The chain of ends, and advice', WhySchema), ...problems(404) },
});

export const whyJobRoute = createRoute({
  method: 'get',
  path: '/v1/jobs/{id}/why',
  operationId: 'whyJob',
  summary: 'The same for a job: its newest turn, or why it has none yet',
  request: { params: JobPath },
  responses: { 200: json('The chain of ends, and advice', WhySchema), ...problems(404) },
});

export const eventsRoute = createRoute({
  method: 'get',
  path: '/v1/jobs/{id}/events',
  operationId: 'followJob',
  summary: 'What happens in a job, as server-sent events',
  description:
    'Each event has its number as id and its kind as name; resume with Last-Event-ID. `delta` pieces have no id and ' +
    'are superseded by the `stream.ended` of their attempt; `attempt.discarded` takes them back. The last one is ' +
    '`end`; then the stream closes. 204: the job is done and you have everything.',
  request: { params: JobPath, headers: EventsHeaders, query: EventsQuery },
  responses: {
    200: { description: 'The stream', content: { 'text/event-stream': { schema: { type: 'string' } } } },
    204: { description: 'Nothing is left to be sent' },
    ...problems(400, 404),
  },
});

export const cancelRoute = createRoute({
  method: 'post',
  path: '/v1/jobs/{id}/cancel',
  operationId: 'cancelJob',
  summary: 'Ask a job to end',
  request: { params: JobPath, body: { content: { 'application/json': { schema: CancelBody } } } },
  responses: {
    202: json('The running turn was asked to end', CancelledSchema),
    200: json('It had ended already, or had not begun and is withdrawn', CancelledSchema),
    ...problems(400, 404, 413, 415, 422),
  },
});

export const approvalsRoute = createRoute({
  method: 'get',
  path: '/v1/approvals',
  operationId: 'listApprovals',
  summary: 'Calls that wait for a person, and outcomes that only a person can tell, oldest first',
  responses: { 200: json('All of them', ApprovalsSchema), ...problems() },
});

export const answerRoute = createRoute({
  method: 'post',
  path: '/v1/approvals/{id}',
  operationId: 'answerApproval',
  summary: 'Answer an approval, once',
  description:
    'The first answer stands; whoever comes second is told it. Rejecting or cancelling also ends the turn. An outcome ' +
    'may be answered after its turn has ended INTERRUPTED: the ledger learns it, and a new turn goes on with it.',
  request: {
    params: ApprovalPath,
    body: body(AnswerBody),
  },
  responses: { 200: json('The answer that stands', AnsweredSchema), ...problems(400, 404, 409, 413, 415, 422) },
});

export const planRoute = createRoute({
  method: 'put',
  path: '/v1/sessions/{id}/plan',
  operationId: 'setPlan',
  summary: 'Set or take away the plan flag of a session',
  description:
    'While it is set, calls that change anything but PLAN.md are refused, whatever the permission mode is; for calls ' +
    'that begin after it.',
  request: {
    params: SessionPath,
    body: body(PlanBody),
  },
  responses: { 200: json('How it stands now', PlanSchema), ...problems(400, 404, 413, 415, 422) },
});

export const reportRoute = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/events/{name}',
  operationId: 'reportEvent',
  summary: 'Report an event that an agent may wait for',
  description:
    'Ends every open wait of the session for that name, also those that a BLOCKED turn has left. With none it is kept ' +
    'for the rest of the running turn. The same id again is the same event.',
  request: {
    params: EventPath,
    body: body(ReportBody),
  },
  responses: { 200: json('What it did', ReportedSchema), ...problems(400, 404, 409, 413, 415, 422) },
});
