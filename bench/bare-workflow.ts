import { proxyActivities } from '@temporalio/workflow';
import type { BareActivities } from './bare-activities.ts';

const { ask, act } = proxyActivities<BareActivities>({ startToCloseTimeout: '1m', heartbeatTimeout: '5s' });

/** The least a durable loop can do: two activities a round, each with one HTTP request and one insert. */
export async function bareWorkflow(loop: string, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await ask(loop, round);
    await act(loop, round);
  }
}
