import { createRoute, z } from '@hono/zod-openapi';
import { BAD_BODY, body, By, Cursor, json, Limit, OwnId, problems, Why } from './parts.ts';
import { SessionPath } from './schemas.ts';

const Title = z.string().max(500);
const STATES = ['open', 'archived'] as const;
const HASH = 'Hash of one of its messages (8 digits or more will do), or `start` for the empty conversation.';

const SessionSchema = z
  .object({
    id: z.string(),
    title: z.string().nullable(),
    agent: z.string(),
    state: z.enum(STATES),
    plan: z.boolean(),
    head: z.string().openapi({ description: 'Hash of its newest message.' }),
    forkedFrom: z.object({ session: z.string(), at: z.string() }).nullable(),
    workspace: z.object({ kind: z.enum(['host', 'shared']), path: z.string() }),
    turn: z.string().nullable().openapi({ description: 'The turn that runs.' }),
    waiting: z.number().int().openapi({ description: 'Inputs that wait for a turn.' }),
    createdAt: z.iso.datetime(),
  })
  .openapi('Session');

const SessionPage = z
  .object({ sessions: z.array(SessionSchema).readonly(), next: z.string().nullable() })
  .openapi('Sessions');

const MessageSchema = z
  .object({
    hash: z.string(),
    depth: z.number().int(),
    kind: z.enum(['user', 'assistant', 'tool_result', 'directive', 'reminder', 'interruption', 'compaction']),
    text: z.string(),
    tools: z.array(z.string()).readonly(),
    at: z.iso.datetime(),
  })
  .openapi('Message');

const MessagePage = z
  .object({
    head: z.string(),
    messages: z.array(MessageSchema).readonly(),
    next: z.string().nullable().openapi({ description: 'Read on with `from`; null at the beginning.' }),
  })
  .openapi('Messages');

const BRANCH = {
  at: z.string().openapi({ description: 'The message that was named, in full.' }),
  head: z.string().openapi({ description: 'That message, or what the model is told behind it.' }),
  effects: z.number().int().openapi({ description: 'Calls behind that point that may have changed the world.' }),
};
const ForkedSchema = z.object({ session: z.string(), isNew: z.boolean(), ...BRANCH }).openapi('ForkedSession');
const RewoundSchema = z.object(BRANCH).openapi('RewoundSession');

const ForkBody = z
  .strictObject({
    at: z
      .string()
      .max(64)
      .optional()
      .openapi({ description: `${HASH} Its head if left out.` }),
    title: Title.optional(),
    id: OwnId.openapi({ description: 'The same id again is the same fork.' }),
    by: By,
  })
  .openapi('ForkSession');
const RewindBody = z
  .strictObject({ to: z.string().max(64).openapi({ description: HASH }), by: By, why: Why })
  .openapi('RewindSession');
const TitleBody = z.strictObject({ title: Title, by: By }).openapi('RenameSession');
const ArchiveBody = z.strictObject({ archived: z.boolean(), by: By, why: Why }).openapi('ArchiveSession');
const TitleSchema = z.object({ title: z.string() }).openapi('SessionTitle');
const ArchivedSchema = z.object({ archived: z.boolean(), changed: z.boolean() }).openapi('ArchivedSession');

export const sessionsRoute = createRoute({
  method: 'get',
  path: '/v1/sessions',
  operationId: 'listSessions',
  summary: 'Sessions, newest first',
  request: {
    query: z.object({ cursor: Cursor, limit: Limit, state: z.enum(STATES).optional() }),
  },
  responses: { 200: json('One page', SessionPage), ...problems(400) },
});

export const sessionRoute = createRoute({
  method: 'get',
  path: '/v1/sessions/{id}',
  operationId: 'getSession',
  summary: 'A session, or that of a job',
  request: { params: SessionPath },
  responses: { 200: json('The session', SessionSchema), ...problems(404) },
});

export const messagesRoute = createRoute({
  method: 'get',
  path: '/v1/sessions/{id}/messages',
  operationId: 'listMessages',
  summary: 'The transcript, newest message first',
  request: {
    params: SessionPath,
    query: z.object({
      from: z.string().max(64).optional().openapi({ description: 'The newest message to show; the head if left out.' }),
      limit: Limit,
    }),
  },
  responses: { 200: json('One page', MessagePage), ...problems(400, 404) },
});

export const forkRoute = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/fork',
  operationId: 'forkSession',
  summary: 'Open a session with the same past up to a message',
  description:
    'Same agent, same workspace: both sessions see what the other one does to the files. What calls behind that ' +
    'message did to the world is told to the model.',
  request: { params: SessionPath, body: body(ForkBody) },
  responses: {
    201: json('The new session', ForkedSchema),
    200: json('This id had brought it before', ForkedSchema),
    ...problems(...BAD_BODY, 409),
  },
});

export const rewindRoute = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/rewind',
  operationId: 'rewindSession',
  summary: 'Take a session back to a message, or forward again',
  description:
    'Nothing is deleted, and the world is not rewound: what calls behind that message did is told to the model. ' +
    'Refused while a turn is open.',
  request: { params: SessionPath, body: body(RewindBody) },
  responses: { 200: json('The head that it has now', RewoundSchema), ...problems(...BAD_BODY, 409) },
});

export const titleRoute = createRoute({
  method: 'put',
  path: '/v1/sessions/{id}/title',
  operationId: 'renameSession',
  summary: 'Give a session another title',
  request: { params: SessionPath, body: body(TitleBody) },
  responses: { 200: json('The title it has now', TitleSchema), ...problems(...BAD_BODY) },
});

export const archivedRoute = createRoute({
  method: 'put',
  path: '/v1/sessions/{id}/archived',
  operationId: 'archiveSession',
  summary: 'Put a session into the archive, or take it out',
  description: 'An archived session takes no inputs, answers or events; it can be read and forked. It must be at rest.',
  request: { params: SessionPath, body: body(ArchiveBody) },
  responses: { 200: json('How it stands now', ArchivedSchema), ...problems(...BAD_BODY, 409) },
});
