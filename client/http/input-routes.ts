import { createRoute, z } from '@hono/zod-openapi';
import { MODES } from '../inputs.ts';
import { BAD_BODY, body, By, Cursor, json, Limit, OwnId, problems, Why } from './parts.ts';
import { SessionPath } from './schemas.ts';

const Id = OwnId.openapi({ description: 'Your own id: the same one again is the same.' });
const Text = z
  .string()
  .max(1_000_000)
  .refine((text) => text.trim() !== '', 'the input has no text');
const InputPath = z.object({ id: z.string().openapi({ param: { name: 'id', in: 'path' } }) });

const Mode = z
  .enum(MODES)
  .optional()
  .openapi({
    description:
      '`prompt` (if left out): it waits until the session is idle, behind what people sent before, and gets a turn and an ' +
      'end of its own. `steer`: the running turn takes it in at its next safe point. `send_now`: what the turn streams or ' +
      'waits for is cut short for it.',
  });
const SendBody = z.strictObject({ text: Text, mode: Mode, id: Id, by: By }).openapi('SendInput');
const EditBody = z.strictObject({ text: Text, by: By }).openapi('EditInput');
const WithdrawBody = z.strictObject({ by: By, why: Why }).openapi('WithdrawInput');
const LockBody = z.strictObject({ by: By }).openapi('LockInput');

const SentSchema = z
  .object({
    id: z.string(),
    session: z.string(),
    isNew: z.boolean().openapi({ description: 'False: your id had brought it before.' }),
  })
  .openapi('SentInput');

const KINDS = ['prompt', 'steer', 'send_now', 'call_back', 'agent_end', 'directive', 'wake'] as const;
const STATUSES = ['queued', 'forwarded', 'consumed', 'dropped_by_cancel', 'withdrawn', 'hook_blocked'] as const;
const REASONS = ['COMPLETED', 'BLOCKED', 'MAX_TOKENS', 'ABORTED', 'ERROR', 'INTERRUPTED'] as const;

const InputSchema = z
  .object({
    id: z.string(),
    session: z.string(),
    kind: z.enum(KINDS),
    class: z.enum(['people', 'wake_up']),
    status: z.enum(STATUSES),
    text: z.string(),
    by: z.string().nullable(),
    createdAt: z.iso.datetime(),
    turn: z.string().nullable().openapi({ description: 'The turn that has it, or had it.' }),
    end: z.enum(REASONS).nullable().openapi({ description: 'How that turn ended.' }),
    message: z.string().nullable().openapi({ description: 'The message it became.' }),
    isLeftOver: z.boolean(),
    lock: z.object({ by: z.string(), until: z.iso.datetime() }).nullable(),
    dropped: z
      .object({ by: z.string().nullable(), why: z.string().nullable(), at: z.iso.datetime().nullable() })
      .nullable(),
  })
  .openapi('Input');

const InputPage = z.object({ inputs: z.array(InputSchema).readonly(), next: z.string().nullable() }).openapi('Inputs');
const ChangedSchema = z
  .object({ changed: z.boolean().openapi({ description: 'False: it was withdrawn before.' }) })
  .openapi('ChangedInput');
const LockedSchema = z.object({ until: z.iso.datetime() }).openapi('LockedInput');

export const sendRoute = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/inputs',
  operationId: 'sendInput',
  summary: 'Say something further to a session, or to that of a job',
  description:
    'By its mode it waits for a turn of its own, or joins the one that runs; to end that one, cancel the job. ' +
    'Answered only when the engine has accepted it. At most 1,000 wait: then 429 with Retry-After.',
  request: { params: SessionPath, body: body(SendBody) },
  responses: {
    201: json('It is queued', SentSchema),
    200: json('This id had brought it before', SentSchema),
    ...problems(...BAD_BODY, 409, 429),
  },
});

export const inputsRoute = createRoute({
  method: 'get',
  path: '/v1/sessions/{id}/inputs',
  operationId: 'listInputs',
  summary: 'Inputs of a session, oldest first, with who sent them and what became of them',
  request: {
    params: SessionPath,
    query: z.object({
      cursor: Cursor,
      limit: Limit,
      waiting: z
        .enum(['true', 'false'])
        .optional()
        .openapi({ description: '`true`: only those that no turn has heard yet.' }),
    }),
  },
  responses: { 200: json('One page', InputPage), ...problems(400, 404) },
});

export const editInputRoute = createRoute({
  method: 'put',
  path: '/v1/inputs/{id}',
  operationId: 'editInput',
  summary: 'Give an input that still waits another text',
  description: 'Lets go of your own lock. Refused once a turn has it, and while somebody else edits it.',
  request: { params: InputPath, body: body(EditBody) },
  responses: { 200: json('It has that text', ChangedSchema), ...problems(...BAD_BODY, 409) },
});

export const withdrawRoute = createRoute({
  method: 'post',
  path: '/v1/inputs/{id}/withdraw',
  operationId: 'withdrawInput',
  summary: 'Take back an input that still waits',
  request: { params: InputPath, body: body(WithdrawBody) },
  responses: { 200: json('It is withdrawn', ChangedSchema), ...problems(...BAD_BODY, 409) },
});

export const lockRoute = createRoute({
  method: 'put',
  path: '/v1/inputs/{id}/lock',
  operationId: 'lockInput',
  summary: 'Keep an input while you edit it',
  description: 'For 5 minutes turns pass it over and nobody else may change it; again: 5 minutes more.',
  request: { params: InputPath, body: body(LockBody) },
  responses: { 200: json('It is yours until then', LockedSchema), ...problems(...BAD_BODY, 409) },
});

export const unlockRoute = createRoute({
  method: 'post',
  path: '/v1/inputs/{id}/unlock',
  operationId: 'unlockInput',
  summary: 'Let go of your lock on an input',
  request: { params: InputPath, body: body(LockBody) },
  responses: { 200: json('It may be taken', ChangedSchema), ...problems(...BAD_BODY, 409) },
});
