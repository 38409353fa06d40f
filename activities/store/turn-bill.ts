import { NO_USAGE } from '../../workflows/core/sample-outcome.ts';
import { chargedMicroUsd, chargedTokens } from '../../workflows/core/usage.ts';
import type { turn } from './schema.ts';

/** What an ended turn costs the goal of its session. */
export interface TurnBill {
  readonly tokens: number;
  readonly microUsd: number;
  readonly runningMs: number;
}

type Ended = Pick<typeof turn.$inferSelect, 'endUsage' | 'endRunningMs' | 'endedAt' | 'openedAt'>;

export function billOf({ endUsage, endRunningMs, endedAt, openedAt }: Ended): TurnBill {
  const usage = endUsage ?? NO_USAGE;
  return {
    tokens: chargedTokens(usage),
    microUsd: chargedMicroUsd(usage),
    // A turn that recovery has ended has measured nothing.
    runningMs: endRunningMs ?? (endedAt?.getTime() ?? 0) - openedAt.getTime(),
  };
}
