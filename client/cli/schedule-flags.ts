import { type Command, InvalidArgumentError } from 'commander';
import type { GoalSchedule } from '../../activities/store/schema.ts';
import { UsageError } from './usage-error.ts';

export interface ScheduleFlags {
  every?: number;
  cron?: string;
  calendar?: Readonly<Record<string, string>>;
  timezone?: string;
  paused?: boolean;
}

export function withSchedule(command: Command): Command {
  return command
    .option('--every <seconds>', 'begin it anew so often; with --session: wake it', toSeconds)
    .option('--cron <expression>', 'begin it anew at these times; with --session: wake it')
    .option('--calendar <fields>', 'the same, as in "dayOfWeek=MON-FRI hour=8,20 minute=30"', toCalendar)
    .option('--timezone <name>', 'of the cron expression or the calendar; UTC if left out')
    .option('--paused', 'begin with the schedule paused; `pawl goal resume` lets it fire');
}

/** What is wrong inside of it is said by who stores it. */
export function scheduleOf({ every, cron, calendar, timezone, paused }: ScheduleFlags): {
  readonly schedule?: GoalSchedule;
} {
  const times = [every, cron, calendar].filter((each) => each !== undefined);
  if (times.length > 1) throw new UsageError('Give one of --every, --cron and --calendar.');
  if (timezone !== undefined && cron === undefined && calendar === undefined)
    throw new UsageError('--timezone goes with --cron or --calendar.');
  if (times.length === 0 && paused) throw new UsageError('--paused goes with --every, --cron or --calendar.');
  const common = { ...(timezone === undefined ? {} : { timezone }), ...(paused ? { paused } : {}) };
  if (every !== undefined) return { schedule: { everySeconds: every, ...common } };
  if (cron !== undefined) return { schedule: { cron, ...common } };
  return calendar === undefined ? {} : { schedule: { calendar, ...common } };
}

function toSeconds(text: string): number {
  if (!/^[1-9]\d{0,11}$/.test(text)) throw new InvalidArgumentError('It is not a whole number of seconds above 0.');
  return Number(text);
}

function toCalendar(text: string): Readonly<Record<string, string>> {
  const pairs = text
    .trim()
    .split(/[\s;]+/)
    .map((pair) => /^(\w+)=(\S+)$/.exec(pair));
  if (pairs.some((pair) => pair === null))
    throw new InvalidArgumentError('Write fields and what they are, as in "dayOfWeek=MONDAY hour=2".');
  return Object.fromEntries(pairs.map((pair) => [pair?.[1] ?? '', pair?.[2] ?? '']));
}
