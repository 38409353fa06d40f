import { z } from '@hono/zod-openapi';
import { idFault } from '../own-id.ts';
import { PAGE } from '../read-jobs.ts';
import { ProblemSchema } from './problem.ts';

/** What many routes have in common. */
export const By = z.string().min(1).max(200).optional().openapi({ description: 'Who wants it; `api` if left out.' });
/** An id of the caller's own: the same one again is the same thing. */
export const OwnId = z
  .string()
  .min(1)
  .max(200)
  .superRefine((id, context) => {
    const fault = idFault(id);
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  })
  .optional();
export const Why = z.string().max(2_000).optional();
export const Cursor = z.string().max(1_000).optional();
export const Limit = z.coerce.number().int().min(1).max(PAGE.max).optional();

export const json = <S extends z.ZodType>(description: string, schema: S) => ({
  description,
  content: { 'application/json': { schema } },
});

/** The body of a request that has to have one. */
export const body = <S extends z.ZodType>(schema: S) => ({
  required: true,
  content: { 'application/json': { schema } },
});

/** Answers that are problem documents, and those that any route may give. */
export const problems = (...statuses: readonly number[]) =>
  Object.fromEntries(
    [...statuses, 403, 500, 503].map((status) => [
      status,
      { description: 'A problem document', content: { 'application/problem+json': { schema: ProblemSchema } } },
    ]),
  );

/** What may be wrong with a request that has a body. */
export const BAD_BODY = [400, 404, 413, 415, 422] as const;
