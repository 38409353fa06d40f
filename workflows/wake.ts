import { workflowInfo } from '@temporalio/workflow';
import { goals } from './goal-activities.ts';
import type { WakeArgs } from './messages.ts';

/**
 * One firing of a Schedule: it begins a round of a recurring goal, or wakes one that is there. What of overlaps and
 * of firings that were missed is the goal's own rule; the engine is told to let all of them come.
 */
export async function wakeWorkflow(args: WakeArgs): Promise<void> {
  const { searchAttributes, startTime } = workflowInfo();
  const [slot] = searchAttributes['TemporalScheduledStartTime'] ?? [];
  const slotMs = slot instanceof Date ? slot.getTime() : startTime.getTime();
  await goals.fireWake({ ...args, slotMs });
}
