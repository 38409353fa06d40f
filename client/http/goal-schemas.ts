import { z } from '@hono/zod-openapi';
import { GOAL_BOUNDS } from '../../activities/store/goal-plan.ts';

const by = z.string().min(1).max(200).optional().openapi({ description: 'Who asks; `api` if left out.' });
const id = z.string().min(1).max(200).optional().openapi({ description: 'The same id again is the same request.' });
const objective = z
  .string()
  .max(GOAL_BOUNDS.objectiveChars)
  .refine((text) => text.trim() !== '', 'the objective has no text');

const Check = z.union([
  z.string().min(1).max(10_000),
  z.strictObject({
    command: z.string().min(1).max(10_000),
    timeoutSeconds: z.number().int().min(1).max(GOAL_BOUNDS.checkSeconds),
  }),
]);

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
      calendar: z.partialRecord(z.enum(CALENDAR), z.union([z.string().min(1).max(200), z.number().int()])),
      ...When,
    }),
  ])
  .openapi('GoalSchedule', {
    description: 'An interval, a cron expression or a calendar, in a time zone; UTC if left out.',
  });

const WISH = {
  checks: z.array(Check).max(GOAL_BOUNDS.checks).optional().openapi({
    description: 'Command lines, run in the workspace after each turn: all exit with 0 when the goal is reached.',
  }),
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

export const RecurringSchema = z
  .object({
    id: z.string(),
    objective: z.string(),
    schedule: z.unknown(),
    endedAt: z.iso.datetime().nullable(),
    firings: z
      .array(
        z.object({
          slot: z.iso.datetime().openapi({ description: 'The time that it was meant for.' }),
          outcome: z.enum(['started', 'skipped', 'superseded']),
          goal: z.string().nullable(),
          at: z.iso.datetime(),
        }),
      )
      .readonly(),
  })
  .openapi('RecurringGoal');

const Amounts = z.object({
  turns: z.number().int(),
  tokens: z.number().int(),
  microUsd: z.number().int().nullable(),
  runningMs: z.number().int(),
});

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
    checks: z.array(z.object({ command: z.string(), timeoutSeconds: z.number() })).readonly(),
    sceptics: z.number().int(),
    template: z.string().nullable(),
    createdBy: z.string().nullable(),
    createdAt: z.iso.datetime(),
    changedAt: z.iso.datetime(),
  })
  .openapi('Goal');

export const GoalWithWakesSchema = GoalSchema.extend({
  wakes: z
    .array(
      z.object({
        id: z.string(),
        source: z.enum(['api', 'schedule']),
        event: z.string().nullable(),
        by: z.string().nullable(),
        outcome: z.string().nullable().openapi({ description: 'Null: it waits to be heard.' }),
        why: z.string().nullable(),
        at: z.iso.datetime(),
      }),
    )
    .readonly(),
}).openapi('GoalWithWakes');

export const GoalsSchema = z.object({ goals: z.array(GoalSchema).readonly() }).openapi('Goals');

export const GoalsQuery = z.object({ open: z.enum(['true', 'false']).optional() });

export const GoalPath = z.object({ id: z.string().openapi({ param: { name: 'id', in: 'path' } }) });

const ORDER = { id, by, why: z.string().max(2_000).optional() };

export const OrderBody = z.strictObject(ORDER).openapi('OrderGoal');

export const EditGoalBody = z
  .strictObject({ ...ORDER, objective: objective.optional(), budget: BudgetBody.optional() })
  .refine((body) => body.objective !== undefined || body.budget !== undefined, 'name an objective, a budget, or both')
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
      .enum(['fired', 'recorded', 'superseded', 'expired'])
      .nullable()
      .openapi({ description: 'Null: the goal is told now; look at the goal for what became of it.' }),
    why: z.string().nullable(),
  })
  .openapi('WokenGoal');
