import { z } from '@hono/zod-openapi';
import { GOAL_BOUNDS } from '../../activities/store/goal-plan.ts';
import { OwnId } from './parts.ts';

const by = z.string().min(1).max(200).optional().openapi({ description: 'Who asks; `api` if left out.' });
const id = OwnId.openapi({ description: 'The same id again is the same request.' });
const objective = z
  .string()
  .max(GOAL_BOUNDS.objectiveChars)
  .refine((text) => text.trim() !== '', 'the objective has no text');

const timeoutSeconds = z.number().int().min(1).max(GOAL_BOUNDS.checkSeconds);
const commandLine = z.string().min(1).max(10_000);
const TOOL = { tool: z.string().min(1).max(200), expect: z.unknown().optional() };

const Check = z.union([
  commandLine,
  z.strictObject({ command: commandLine, timeoutSeconds: timeoutSeconds.optional() }),
  z
    .strictObject({
      ...TOOL,
      arguments: z.record(z.string(), z.unknown()).optional(),
      timeoutSeconds: timeoutSeconds.optional(),
    })
    .refine((check) => JSON.stringify(check).length <= 10_000, 'a check has 10,000 characters at most'),
]);

const ShownCheck = z.union([
  z.object({ command: z.string(), timeoutSeconds: z.number() }),
  z.object({ ...TOOL, arguments: z.record(z.string(), z.unknown()).readonly(), timeoutSeconds: z.number() }),
]);

const checks = z
  .array(Check)
  .max(GOAL_BOUNDS.checks)
  .optional()
  .openapi({
    description:
      'Made after each turn; the goal is reached when all pass. A command line is run in the workspace, and passes with ' +
      'exit code 0. A call of one of the agent’s tools that only reads, or is idempotent, passes when it succeeds; with ' +
      '`expect`, when its result is that text, or has that JSON in it.',
  });

const BudgetBody = z.strictObject({
  turns: z.number().int().min(1).max(100_000).optional(),
  tokens: z.number().int().min(1).max(1_000_000_000).optional(),
  usd: z.number().positive().max(1_000_000).optional().openapi({ description: 'Needs known prices.' }),
  hours: z.number().positive().max(100_000).optional().openapi({ description: 'Of work, without waiting.' }),
});

const When = { timezone: z.string().min(1).max(100).optional(), paused: z.boolean().optional() };
const CALENDAR = ['second', 'minute', 'hour', 'dayOfMonth', 'month', 'dayOfWeek', 'year'] as const;

const ScheduleSchema = z
  .union([
    z.strictObject({ everySeconds: z.number().int().min(1).max(31_536_000), ...When }),
    z.strictObject({ cron: z.string().min(1).max(200), ...When }),
    z.strictObject({
      calendar: z.partialRecord(z.enum(CALENDAR), z.union([z.string().min(1).max(200), z.number().int()])).openapi({
        description: 'Values, ranges and steps, as in `8-18/2` or `MON-FRI`. What is left out: 0 for times, else all.',
      }),
      ...When,
    }),
  ])
  .openapi('GoalSchedule', {
    description: 'An interval, a cron expression or a calendar, in a time zone; UTC if left out.',
  });

const WISH = {
  checks,
  sceptics: z.number().int().min(1).max(GOAL_BOUNDS.sceptics).optional(),
  judge: z
    .strictObject({ provider: z.string().min(1).max(200), model: z.string().min(1).max(200) })
    .optional()
    .openapi({ description: 'Who judges; the agent’s own model if left out.' }),
  budget: BudgetBody.optional(),
};

/** The goal that a job comes with. */
export const GoalWishSchema = z.strictObject({ ...WISH, objective: objective.optional() }).openapi('GoalWish');

export const CreateGoalBody = z
  .strictObject({
    ...WISH,
    objective,
    session: z.string().max(200).optional().openapi({
      description: 'The session that works on it, or a job of that session; a new one if left out.',
    }),
    agent: z.string().optional(),
    workspace: z.string().optional(),
    schedule: ScheduleSchema.optional().openapi({
      description: 'Each firing begins a goal of its own; with `session`, that one goal is woken instead.',
    }),
    by,
  })
  .openapi('CreateGoal');

export const CreatedGoalSchema = z
  .object({ id: z.string(), session: z.string().nullable(), isNew: z.boolean() })
  .openapi('CreatedGoal');

const Amounts = z.object({
  turns: z.number().int(),
  tokens: z.number().int(),
  microUsd: z.number().int().nullable(),
  runningMs: z.number().int(),
});

const Commands = z
  .array(
    z.object({
      id: z.string(),
      kind: z.enum(['pause', 'resume', 'edit', 'cancel']),
      by: z.string().nullable(),
      why: z.string().nullable(),
      answer: z.string().nullable().openapi({ description: 'The status that it brought about.' }),
      at: z.iso.datetime(),
    }),
  )
  .readonly();

const RECURRING = {
  id: z.string(),
  objective: z.string(),
  schedule: z.unknown(),
  status: z.enum(['active', 'paused(user)', 'cancelled']),
};

export const RecurringSchema = z
  .object({
    ...RECURRING,
    endedAt: z.iso.datetime().nullable(),
    budget: Amounts,
    checks: z.array(ShownCheck).readonly(),
    commands: Commands,
    firings: z
      .array(
        z.object({
          slot: z.iso.datetime().openapi({ description: 'The time that it was meant for.' }),
          outcome: z.enum(['started', 'skipped', 'superseded', 'cancelled']),
          goal: z.string().nullable(),
          at: z.iso.datetime(),
        }),
      )
      .readonly(),
  })
  .openapi('RecurringGoal');

const GoalSchema = z
  .object({
    id: z.string(),
    session: z.string(),
    objective: z.string(),
    version: z.number().int(),
    status: z.string().openapi({ example: 'paused(user)' }),
    final: z.boolean(),
    rounds: z.number().int(),
    budget: Amounts,
    spent: Amounts,
    checks: z.array(ShownCheck).readonly(),
    sceptics: z.number().int(),
    template: z.string().nullable(),
    createdBy: z.string().nullable(),
    createdAt: z.iso.datetime(),
    changedAt: z.iso.datetime(),
  })
  .openapi('Goal');

export const GoalWithWakesSchema = GoalSchema.extend({
  until: z.iso.datetime().nullable().openapi({ description: 'When its rest ends by itself.' }),
  event: z.string().nullable().openapi({ description: 'The event that it waits for.' }),
  verdict: z
    .object({ source: z.string(), text: z.string(), nextStep: z.string().nullable() })
    .nullable()
    .openapi({ description: 'What was found of the newest turn that was judged.' }),
  commands: Commands,
  wakes: z
    .array(
      z.object({
        id: z.string(),
        source: z.enum(['api', 'schedule', 'event']),
        event: z.string().nullable(),
        by: z.string().nullable(),
        outcome: z.string().nullable().openapi({ description: 'Null: it waits to be heard.' }),
        why: z.string().nullable(),
        at: z.iso.datetime(),
      }),
    )
    .readonly(),
}).openapi('GoalWithWakes');

export const GoalsSchema = z
  .object({ goals: z.array(GoalSchema).readonly(), recurring: z.array(z.object(RECURRING)).readonly() })
  .openapi('Goals');

export const GoalsQuery = z.object({ open: z.enum(['true', 'false']).optional() });

export const GoalPath = z.object({ id: z.string().openapi({ param: { name: 'id', in: 'path' } }) });

const ORDER = { id, by, why: z.string().max(2_000).optional() };

export const OrderBody = z.strictObject(ORDER).openapi('OrderGoal');

export const EditGoalBody = z
  .strictObject({ ...ORDER, objective: objective.optional(), budget: BudgetBody.optional(), checks })
  .refine(
    (body) => body.objective !== undefined || body.budget !== undefined || body.checks !== undefined,
    'name an objective, a budget, or checks',
  )
  .openapi('EditGoal');

export const OrderedSchema = z
  .object({ status: z.string().openapi({ description: 'The status that the goal has then.' }) })
  .openapi('OrderedGoal');

export const WakeBody = z
  .strictObject({
    id: id.openapi({ description: 'Twice delivered is once woken.' }),
    event: z.string().trim().min(1).max(200).optional().openapi({ description: 'What has happened, by its name.' }),
    by,
  })
  .openapi('WakeGoal');

export const WokenSchema = z
  .object({
    id: z.string(),
    isNew: z.boolean().openapi({ description: 'False: this id had brought it before.' }),
    outcome: z
      .enum(['fired', 'recorded', 'superseded'])
      .nullable()
      .openapi({ description: 'Null: the goal is told now; look at the goal for what became of it.' }),
    why: z.string().nullable(),
  })
  .openapi('WokenGoal');
