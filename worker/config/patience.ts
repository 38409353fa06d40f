import { z } from 'zod';
import { DEFAULT_PATIENCE, type Patience } from '../../workflows/core/policy.ts';

const DAY_MS = 24 * 3_600_000;
const RETRIES_MAX = 100;

const ms = (most: number) => {
  const message = `give whole milliseconds, from 1 to ${most}`;
  return z.int(message).min(1, message).max(most, message);
};
const delays = (least: number) => {
  const message = `give ${least} to ${RETRIES_MAX} delays, each in whole milliseconds up to ${DAY_MS}`;
  return z
    .array(z.int(message).min(0, message).max(DAY_MS, message), message)
    .min(least, message)
    .max(RETRIES_MAX, message);
};
const count = (least: number) => {
  const message = `give a whole number, from ${least} to ${RETRIES_MAX}`;
  return z.int(message).min(least, message).max(RETRIES_MAX, message);
};

/** For the field `patience` of an agent: everything in it is finite. */
export const patienceShape = z
  .strictObject({
    transportDelaysMs: delays(1),
    transportAttempts: count(1),
    transientDelaysMs: delays(0),
    transientPerTurn: count(0),
    outageMs: ms(DAY_MS),
    rateLimitAttempts: count(0),
    rateLimitWaitMs: ms(DAY_MS),
    rateLimitWaitMaxMs: ms(DAY_MS),
    parkMaxMs: ms(30 * DAY_MS),
    authDelaysMs: delays(0),
    overloadsInARow: count(1),
    resumeAfterMs: ms(DAY_MS),
    // The HTTP client gives up by itself after the default.
    stallMs: ms(DEFAULT_PATIENCE.stallMs),
    // An attempt of a sample has a day.
    totalMs: ms(DAY_MS / 2),
    usageWaitMs: ms(DEFAULT_PATIENCE.stallMs),
    flushWaitMs: ms(DEFAULT_PATIENCE.stallMs),
  } satisfies Record<keyof Patience, z.ZodType>)
  .partial();
