import { createRoute } from '@hono/zod-openapi';
import {
  CreatedGoalSchema,
  CreateGoalBody,
  EditGoalBody,
  GoalPath,
  GoalsQuery,
  GoalsSchema,
  GoalWithWakesSchema,
  OrderBody,
  OrderedSchema,
  RecurringSchema,
  WakeBody,
  WokenSchema,
} from './goal-schemas.ts';
import { json, problems } from './parts.ts';
import { SubmitHeaders } from './schemas.ts';
import { WhySchema } from './why-schema.ts';

export const createGoalRoute = createRoute({
  method: 'post',
  path: '/v1/goals',
  operationId: 'createGoal',
  summary: 'Give a session an objective to work on until it is reached',
  description: 'The same key with the same body is the same goal. A session has at most one that is open.',
  request: {
    headers: SubmitHeaders,
    body: { required: true, content: { 'application/json': { schema: CreateGoalBody } } },
  },
  responses: {
    201: json('The goal is at work', CreatedGoalSchema),
    200: json('This key had brought the goal before', CreatedGoalSchema),
    ...problems(400, 404, 409, 413, 415, 422),
  },
});

export const listGoalsRoute = createRoute({
  method: 'get',
  path: '/v1/goals',
  operationId: 'listGoals',
  summary: 'Goals and recurring goals, newest first',
  request: { query: GoalsQuery },
  responses: { 200: json('The newest 200', GoalsSchema), ...problems(400) },
});

export const getGoalRoute = createRoute({
  method: 'get',
  path: '/v1/goals/{id}',
  operationId: 'getGoal',
  summary: 'A goal, how it stands, and what woke it',
  request: { params: GoalPath },
  responses: { 200: json('The goal', GoalWithWakesSchema), ...problems(404) },
});

export const firingsRoute = createRoute({
  method: 'get',
  path: '/v1/goals/{id}/firings',
  operationId: 'listFirings',
  summary: 'A recurring goal, and what became of each firing',
  request: { params: GoalPath },
  responses: { 200: json('The newest 200', RecurringSchema), ...problems(404) },
});

export const whyGoalRoute = createRoute({
  method: 'get',
  path: '/v1/goals/{id}/why',
  operationId: 'whyGoal',
  summary: 'Why a goal is as it is, and what to do now',
  request: { params: GoalPath },
  responses: { 200: json('The chain of ends, and advice', WhySchema), ...problems(404) },
});

const order = <K extends 'pause' | 'resume' | 'cancel'>(kind: K, summary: string) =>
  createRoute({
    method: 'post',
    path: `/v1/goals/{id}/${kind}`,
    operationId: `${kind}Goal`,
    summary,
    request: { params: GoalPath, body: { content: { 'application/json': { schema: OrderBody } } } },
    responses: { 200: json('How it stands now', OrderedSchema), ...problems(400, 404, 409, 413, 415, 422) },
  });

export const pauseGoalRoute = order('pause', 'No further round; one that runs goes to its end');
export const resumeGoalRoute = order('resume', 'Go on, with fresh brakes and the budget that is left');
export const cancelGoalRoute = order('cancel', 'End the goal, and the round that runs');

export const editGoalRoute = createRoute({
  method: 'patch',
  path: '/v1/goals/{id}',
  operationId: 'editGoal',
  summary: 'Change the objective, the budget or the checks, from the next round on',
  request: {
    params: GoalPath,
    body: { required: true, content: { 'application/json': { schema: EditGoalBody } } },
  },
  responses: { 200: json('How it stands now', OrderedSchema), ...problems(400, 404, 409, 413, 415, 422) },
});

export const wakeGoalRoute = createRoute({
  method: 'post',
  path: '/v1/goals/{id}/wake',
  operationId: 'wakeGoal',
  summary: 'Wake a goal that waits, is blocked, or rests on an outage',
  description:
    'Remembered while a round runs. On a goal that a person, a refusal or missing progress has paused, that has used up ' +
    'its budget, or that is final, it is only recorded, with the reason.',
  request: { params: GoalPath, body: { content: { 'application/json': { schema: WakeBody } } } },
  responses: { 200: json('It is kept, and the goal is told', WokenSchema), ...problems(400, 404, 413, 415, 422) },
});
