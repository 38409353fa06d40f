import { z } from '@hono/zod-openapi';
import { End } from './schemas.ts';

const Link = z.object({
  layer: z.enum(['stream', 'batch', 'turn', 'driver', 'goal']),
  reason: z.string().nullable(),
  detail: z.string().nullable(),
  decidedBy: z.string().nullable(),
  signal: z.string().nullable(),
  at: z.iso.datetime().nullable(),
  words: z.string(),
});

export const WhySchema = z
  .object({
    id: z.string(),
    session: z.string(),
    job: z.string().nullable(),
    turn: z.string().nullable(),
    state: z.enum(['queued', 'never_ran', 'running', 'ended']),
    chain: z.array(Link).readonly().openapi({ description: 'From the last stream outwards to the goal.' }),
    end: End.nullable(),
    doing: z
      .object({
        kind: z.enum(['works', 'rests', 'waits', 'retries', 'lost', 'not_known']),
        since: z.iso.datetime().nullable(),
        until: z.iso.datetime().nullable(),
        attempt: z.number().int().nullable(),
        words: z.string(),
      })
      .nullable()
      .openapi({ description: 'What a turn that has not ended does now.' }),
    goesOn: z
      .object({
        input: z.string(),
        n: z.number().int(),
        of: z.number().int(),
        state: z.enum(['queued', 'opened', 'taken_back']),
        turn: z.string().nullable(),
      })
      .nullable()
      .openapi({ description: 'What the job goes on with by itself after a machine ended this turn.' }),
    waitsFor: z
      .array(
        z.object({
          id: z.string(),
          for: z.enum(['approval', 'outcome', 'input', 'event']),
          tool: z.string(),
          until: z.iso.datetime().nullable(),
        }),
      )
      .readonly(),
    unknownEffects: z
      .array(
        z.object({
          key: z.string(),
          tool: z.string(),
          effect: z.string(),
          state: z.string(),
          note: z.string().nullable(),
          startedAt: z.iso.datetime().nullable(),
        }),
      )
      .readonly(),
    agents: z
      .array(
        z.object({
          agent: z.string(),
          name: z.string(),
          mode: z.enum(['foreground', 'background']),
          startedBy: z.string(),
          call: z.string(),
          startedAt: z.iso.datetime(),
          leaseTokens: z.number().nullable(),
          leaseMicroUsd: z.number().nullable(),
          end: z
            .object({
              reason: z.string(),
              detail: z.string(),
              decidedBy: z.string(),
              by: z.string().nullable(),
              why: z.string().nullable(),
              usage: End.shape.usage,
              at: z.iso.datetime(),
            })
            .nullable(),
        }),
      )
      .readonly()
      .openapi({ description: 'Sub-agents that the turn has started.' }),
    advice: z.array(z.string()).readonly().openapi({ description: 'What to do now, most urgent first.' }),
  })
  .openapi('Why');
