import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import type { Logger } from 'pino';
import { isGrpcServiceError } from '@temporalio/client';
import { POLICY } from '../workflows/core/policy.ts';
import { isStoreAway } from './store/errors.ts';
import { FenceRefused } from './store/fence.ts';
import { ChainBroken } from './store/transcript.ts';

/**
 * The one place where an error of an activity becomes a failure in a history. Only our own fixed sentences
 * pass: what a driver or a tool said may hold a customer's text, so it goes to the log as class and code.
 */
export function toFailure(error: unknown, at: FailedAttempt, log: Logger): Error {
  const failure = failureOf(error, at, log);
  // A stack names folders of this machine.
  failure.stack = `${failure.name}: ${failure.message}`;
  return failure;
}

export interface FailedAttempt {
  readonly activity: string;
  /** The engine's number of this attempt. */
  readonly attempt: number;
}

function failureOf(error: unknown, { activity, attempt }: FailedAttempt, log: Logger): Error {
  if (error instanceof ApplicationFailure || error instanceof CancelledFailure) return error;
  if (error instanceof FenceRefused) {
    return ApplicationFailure.nonRetryable('This turn is not this run’s to move any more.', error.code);
  }
  if (error instanceof ChainBroken) {
    return ApplicationFailure.nonRetryable('Messages of the transcript are missing.', error.code);
  }
  const fault = describe(error);
  log.warn({ activity, ...fault }, 'an activity failed');
  if (fault.sqlState !== null && isRefusedWrite(fault.sqlState)) {
    return ApplicationFailure.nonRetryable('The store refused a write.', 'store.refused');
  }
  if (fault.sqlState !== null || isStoreAway(error) || isGrpcServiceError(rootOf(error))) {
    return ApplicationFailure.retryable('The store or the engine is away; trying again.', 'store.away');
  }
  return ApplicationFailure.create({
    message: 'An activity failed on a fault of its own.',
    type: 'activity.fault',
    nonRetryable: attempt >= POLICY.faults.attempts,
  });
}

function rootOf(error: unknown): unknown {
  return error instanceof Error && error.cause !== undefined ? rootOf(error.cause) : error;
}

interface Fault {
  readonly name: string;
  readonly code: string | null;
  readonly sqlState: string | null;
  readonly at: string | null;
}

function describe(error: unknown): Fault {
  let code: string | null = null;
  let name = 'unknown';
  let at: string | null = null;
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const own = (cause as Error & { code?: unknown }).code;
    if (typeof own === 'string') code = own;
    name = cause.constructor.name;
    at ??=
      cause.stack
        ?.split('\n')
        .find((line) => line.trimStart().startsWith('at '))
        ?.trim() ?? null;
  }
  return { name, code, sqlState: code !== null && /^[0-9A-Z]{5}$/.test(code) ? code : null, at };
}

/** Classes 21–23, 42: the write is wrong and stays wrong. */
function isRefusedWrite(sqlState: string): boolean {
  return ['21', '22', '23', '42'].includes(sqlState.slice(0, 2));
}
