import { z } from '@hono/zod-openapi';
import { JOB_STATES } from '../job.ts';
import { GoalWishSchema } from './goal-schemas.ts';
import { PAGE } from '../read-jobs.ts';
import { OwnId } from './parts.ts';

const USAGE = {
  inputTokens: z.number(),
  cachedTokens: z.number(),
  outputTokens: z.number(),
  reasoningTokens: z.number(),
  complete: z.boolean().openapi({ description: 'False where a provider never told: then the rest is a lower bound.' }),
  microUsd: z.number().int().nullable().openapi({ description: 'Millionths of a US dollar; null: no price is known.' }),
  heldMicroUsd: z.number().int().openapi({ description: 'What may have been spent beyond that, at most.' }),
};

const Usage = z.object(USAGE);

const SUM = {
  ...USAGE,
  requests: z.number().int(),
  incomplete: z.number().int().openapi({ description: 'Requests whose usage is not known, or not yet.' }),
  wasted: z
    .number()
    .int()
    .openapi({ description: 'Requests that brought nothing that was kept; paid for all the same.' }),
  wastedMicroUsd: z.number().int().nullable(),
};

const Cost = z.object({ ...SUM, models: z.array(z.object({ ...SUM, model: z.string() })).readonly() }).openapi('Cost');

export const End = z
  .object({
    reason: z.enum(['COMPLETED', 'BLOCKED', 'MAX_TOKENS', 'ABORTED', 'ERROR', 'INTERRUPTED']),
    detail: z.string().openapi({ example: 'final_answer' }),
    decidedBy: z.enum(['model', 'runtime', 'user', 'scheduler']),
    signal: z.object({ name: z.string() }).openapi({ description: 'What made the decider decide.' }),
    phase: z.string(),
    step: z.number().int(),
    usage: Usage,
    by: z.string().nullable(),
    why: z.string().nullable(),
    recordedBy: z.enum(['turn', 'recovery']),
    structuredOutput: z
      .union([z.object({ value: z.unknown() }), z.object({ error: z.enum(['invalid', 'cut', 'missing', 'refused']) })])
      .nullable()
      .openapi({ description: 'The answer that had to fit outputSchema, or why there is none.' }),
    contract: z
      .enum(['met', 'unmet'])
      .nullable()
      .openapi({ description: 'Whether the tools that the agent requires have succeeded.' }),
    resumeAt: z.iso
      .datetime()
      .nullable()
      .openapi({ description: 'When a provider that was away is worth another try. A hint.' }),
    at: z.iso.datetime(),
  })
  .openapi('End');

const Dropped = z
  .object({
    as: z.enum(['withdrawn', 'dropped_by_cancel', 'hook_blocked']),
    by: z.string().nullable(),
    why: z.string().nullable(),
    at: z.iso.datetime().nullable(),
  })
  .openapi('Dropped');

const JobSchema = z
  .object({
    id: z.string().openapi({ example: 'job_0ml3x9q2b5f0' }),
    session: z.string(),
    agent: z.string(),
    ticket: z.string().nullable(),
    state: z.enum(JOB_STATES),
    createdAt: z.iso.datetime(),
    turn: z.string().nullable().openapi({ description: 'The newest turn that works on it.' }),
    end: End.nullable().openapi({
      description: 'How that turn ended. A job with an end that is still running goes on by itself after it.',
    }),
    goal: z
      .object({ id: z.string(), status: z.string() })
      .nullable()
      .openapi({ description: 'The goal that it came with: the job is done when that one is.' }),
    dropped: Dropped.nullable().openapi({
      description: 'Set for a job that was taken back before it began or went on by itself, or kept back by a hook.',
    }),
  })
  .openapi('Job');

export const JobWithResult = JobSchema.extend({
  text: z.string().nullable().openapi({ description: 'What the model said last, once the turn has ended.' }),
  cost: Cost.openapi({ description: 'Sums over all provider requests so far, and by model.' }),
}).openapi('JobWithResult');

export const JobPageSchema = z
  .object({
    jobs: z.array(JobSchema).readonly(),
    next: z.string().nullable().openapi({ description: 'Cursor of the next page; null on the last.' }),
  })
  .openapi('JobPage');

export const SubmitBody = z
  .strictObject({
    text: z
      .string()
      .refine((text) => text.trim() !== '', 'the ticket has no text')
      .openapi({ description: 'The ticket, as the agent reads it.' }),
    agent: z.string().optional().openapi({ description: 'Name of an agent; the first one if left out.' }),
    ticket: z.string().max(500).optional().openapi({ description: 'Your own number or title of it.' }),
    workspace: z
      .string()
      .optional()
      .openapi({ description: 'A folder under the workspace root; one of its own if left out.' }),
    plan: z
      .boolean()
      .optional()
      .openapi({ description: 'Plan first: nothing but PLAN.md may be changed until the plan flag is taken away.' }),
    maxUsd: z.number().positive().max(1_000_000).optional().openapi({
      description: 'What each turn may cost, in US dollars; needs known prices, and at most what the agent allows.',
    }),
    outputSchema: z
      .record(z.string(), z.unknown())
      .optional()
      .openapi({ description: 'JSON Schema of an object; the answer has to fit it.' }),
    goal: GoalWishSchema.optional().openapi({
      description: 'Work on it until it is reached: the job is done when the goal is final.',
    }),
  })
  .openapi('SubmitJob');

export const SubmittedSchema = z
  .object({ id: z.string(), session: z.string(), isNew: z.boolean() })
  .openapi('SubmittedJob');

export const CancelBody = z
  .strictObject({
    id: OwnId.openapi({ description: 'The same id again is the same request.' }),
    by: z.string().min(1).max(200).optional().openapi({ description: 'Who asks; `api` if left out.' }),
    why: z.string().max(2_000).optional(),
  })
  .openapi('CancelJob');

export const CancelledSchema = z
  .object({ answer: z.enum(['took_request', 'already_ended', 'withdrawn']) })
  .openapi('CancelledJob');

const SessionId = z
  .string()
  .openapi({ description: 'A session. The name of a sub-agent’s has slashes in it: write each as `%2F`.' });

export const TurnPath = z.object({
  session: SessionId.openapi({ param: { name: 'session', in: 'path' } }),
  n: z.string().openapi({ param: { name: 'n', in: 'path' } }),
});

export const JobPath = z.object({ id: z.string().openapi({ param: { name: 'id', in: 'path' } }) });

export const SubmitHeaders = z.object({
  'Idempotency-Key': z.string().regex(/^[\x20-\x7e]{1,255}$/, '1 to 255 printable ASCII characters'),
});

export const ListQuery = z.object({
  cursor: z.string().max(1_000).optional(),
  limit: z.coerce.number().int().min(1).max(PAGE.max).optional(),
  state: z.enum(JOB_STATES).optional(),
});

export const EventsHeaders = z.object({
  'Last-Event-ID': z
    .string()
    .regex(/^\d{1,15}$/, 'the id of an event of this stream')
    .optional(),
});

export const EventsQuery = z.object({
  after: z
    .string()
    .regex(/^\d{1,15}$/, 'the id of an event of this stream')
    .optional()
    .openapi({ description: 'For clients that can’t set Last-Event-ID.' }),
});

export const SessionPath = z.object({ id: SessionId.openapi({ param: { name: 'id', in: 'path' } }) });

export const PlanBody = z
  .strictObject({
    plan: z.boolean(),
    by: z.string().min(1).max(200).optional().openapi({ description: 'Who wants it so; `api` if left out.' }),
  })
  .openapi('SetPlan');

export const PlanSchema = z
  .object({ plan: z.boolean(), changed: z.boolean().openapi({ description: 'False: it was so already.' }) })
  .openapi('PlanState');
const OUTCOMES = ['happened', 'absent', 'again'] as const;

export const ApprovalPath = z.object({ id: z.string().openapi({ param: { name: 'id', in: 'path' } }) });

export const ApprovalsSchema = z
  .object({
    approvals: z
      .array(
        z
          .object({
            id: z.string(),
            session: z.string(),
            turn: z.string(),
            asked: z.object({
              kind: z.enum(['permission', 'question', 'event', 'outcome']).openapi({
                description:
                  'A question or an event is answered by `message`, with its text; an outcome (the call ran, and nobody ' +
                  'knows whether it took effect) by `happened`, `absent` or `again`.',
              }),
              tool: z.string(),
              subject: z.string().nullable(),
              arguments: z.string().openapi({ description: 'JSON, as the model wrote it or a hook changed it.' }),
              onExpiry: z.enum(['deny', 'block', 'end']),
            }),
            openedAt: z.iso.datetime(),
            expiresAt: z.iso
              .datetime()
              .nullable()
              .openapi({ description: 'Null: its turn has ended over it, and the question stays open.' }),
          })
          .openapi('Approval'),
      )
      .readonly(),
  })
  .openapi('Approvals');

export const AnswerBody = z
  .strictObject({
    answer: z.enum(['approved', 'rejected', 'cancelled', 'message', ...OUTCOMES]).openapi({
      description:
        '`happened`: the call took effect; `absent`: it did not; `again`: it is sent once more, whatever became of it.',
    }),
    by: z.string().min(1).max(200).openapi({ description: 'Who decides.' }),
    editedArguments: z
      .string()
      .max(100_000)
      .optional()
      .openapi({ description: 'JSON to use instead of the arguments; validated before the call runs.' }),
    text: z.string().min(1).max(100_000).optional().openapi({
      description:
        'For `message`: what to tell the agent. For `happened`, `absent` and `again`: what to add, if anything.',
    }),
  })
  .refine((body) => body.answer !== 'message' || body.text !== undefined, 'the answer message needs a text')
  .refine(
    (body) => !['approved', 'rejected', 'cancelled'].includes(body.answer) || body.text === undefined,
    'a text goes with message, happened, absent and again',
  )
  .refine(
    (body) => body.answer === 'approved' || body.editedArguments === undefined,
    'only an approval may edit arguments',
  )
  .openapi('AnswerApproval');

export const AnsweredSchema = z
  .object({
    answer: z.enum(['approved', 'rejected', 'cancelled', 'message', 'expired', ...OUTCOMES]),
    by: z.string().nullable(),
    isNew: z.boolean().openapi({ description: 'False: it had this answer before, and that one stands.' }),
  })
  .openapi('AnsweredApproval');

export const EventPath = z.object({
  id: z.string().openapi({
    param: { name: 'id', in: 'path' },
    description: 'A session, or a job in it. Slashes in a name are written as `%2F`.',
  }),
  name: z
    .string()
    .max(200)
    .refine((name) => name.trim() !== '', 'the event has no name')
    .openapi({ param: { name: 'name', in: 'path' }, example: 'build is done' }),
});

export const ReportBody = z
  .strictObject({
    id: OwnId.openapi({ description: 'The same id again is the same event.' }),
    text: z.string().max(100_000).optional().openapi({ description: 'What the agent is told of it.' }),
    by: z.string().min(1).max(200).optional().openapi({ description: 'Who reports; `api` if left out.' }),
  })
  .openapi('ReportEvent');

export const ReportedSchema = z
  .object({
    id: z.string(),
    isNew: z.boolean().openapi({ description: 'False: this id had brought it before.' }),
    waits: z.number().int().openapi({ description: 'How many waits it ended.' }),
    goal: z.string().nullable().openapi({
      description: 'The session’s goal, where no wait took the event: it goes on if it waits for that name.',
    }),
  })
  .openapi('ReportedEvent');
