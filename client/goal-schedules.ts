import {
  type CalendarSpec,
  type Client,
  ScheduleAlreadyRunning,
  ScheduleNotFoundError,
  ScheduleOverlapPolicy,
} from '@temporalio/client';
import type { GoalSchedule } from '../activities/store/schema.ts';
import type { WakeArgs } from '../workflows/messages.ts';

/** A worker that was away for so long still hears of what it missed. */
const CATCH_UP = '30 days';

export function scheduleIdOf(goal: string): string {
  return `goal/${goal}`;
}

/** Makes the engine fire; a Schedule that is there already stays as it is. */
export async function createSchedule(
  client: Client,
  taskQueue: string,
  args: WakeArgs,
  schedule: GoalSchedule,
): Promise<void> {
  try {
    await client.schedule.create({
      scheduleId: scheduleIdOf(args.id),
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

function specOf(schedule: GoalSchedule) {
  const zone = schedule.timezone === undefined ? {} : { timezone: schedule.timezone };
  if ('everySeconds' in schedule) return { intervals: [{ every: `${schedule.everySeconds}s` as const }], ...zone };
  if ('cron' in schedule) return { cronExpressions: [schedule.cron], ...zone };
  return { calendars: [schedule.calendar as CalendarSpec], ...zone };
}

/** False: the engine has no such Schedule. */
export async function changeSchedule(
  client: Client,
  goal: string,
  change: 'pause' | 'resume' | 'cancel',
): Promise<boolean> {
  const handle = client.schedule.getHandle(scheduleIdOf(goal));
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
