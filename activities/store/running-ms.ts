import type { turn } from './schema.ts';

type Ended = Pick<typeof turn.$inferSelect, 'endRunningMs' | 'endedAt' | 'openedAt'>;

/** Working time of an ended turn; one that recovery has ended has measured nothing. */
export function runningMsOf({ endRunningMs, endedAt, openedAt }: Ended): number {
  return endRunningMs ?? (endedAt?.getTime() ?? 0) - openedAt.getTime();
}
