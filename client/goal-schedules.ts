import { type Client, ScheduleAlreadyRunning, ScheduleNotFoundError, ScheduleOverlapPolicy } from '@temporalio/client';
import type { GoalSchedule } from '../activities/store/schema.ts';
import { goalScheduleId, type WakeArgs } from '../workflows/messages.ts';
import { specOf } from './schedule-spec.ts';

/** A worker that was away for so long still hears of what it missed. */
const CATCH_UP = '30 days';

/** Makes the engine fire; a Schedule that is there already stays as it is. */
export async function createSchedule(
  client: Client,
  taskQueue: string,
  args: WakeArgs,
  schedule: GoalSchedule,
): Promise<void> {
  try {
    await client.schedule.create({
      scheduleId: goalScheduleId(args.id),
      spec: specOf(schedule),
      policies: { overlap: ScheduleOverlapPolicy.ALLOW_ALL, catchupWindow: CATCH_UP },
      action: {
        type: 'startWorkflow',
        workflowType: 'wakeWorkflow',
        taskQueue,
        workflowId: `wake/${args.id}`,
        args: [args],
      },
      state: { paused: schedule.paused ?? false },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}

/** False: the engine has no such Schedule. */
export async function changeSchedule(
  client: Client,
  goal: string,
  change: 'pause' | 'resume' | 'cancel',
): Promise<boolean> {
  const handle = client.schedule.getHandle(goalScheduleId(goal));
  try {
    if (change === 'pause') await handle.pause();
    else if (change === 'resume') await handle.unpause();
    else await handle.delete();
    return true;
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return false;
    throw error;
  }
}
