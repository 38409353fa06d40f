import { sleep } from '@temporalio/workflow';
import { recovery } from './activities.ts';
import { POLICY } from './core/policy.ts';

const ROUNDS = 240;

/**
 * Looks again and again for what a killed process or workflow left behind. One at a time: a Schedule starts
 * it and skips while it runs, so it comes back within a minute even after somebody terminates it.
 */
export async function recoveryWorkflow(): Promise<void> {
  let after: string | null = null;
  for (let round = 0; round < ROUNDS; round += 1) {
    after = (await recovery.sweep(after)).after ?? null;
    // Where more turns are open than one look takes, the next one goes on at once.
    if (after === null) await sleep(POLICY.recovery.everyMs, { summary: 'until the next sweep' });
  }
}
