import type { CalendarSpec, ScheduleSpec } from '@temporalio/client';
import type { CalendarField, GoalSchedule } from '../activities/store/schema.ts';
import { type FieldName, FIELDS, fieldWords, type Range, rangesOf } from './schedule-fields.ts';

/** In the order of a cron expression of 7 fields; of 6 without the second, of 5 without the year too. */
const CRON: readonly FieldName[] = ['second', 'minute', 'hour', 'dayOfMonth', 'month', 'dayOfWeek', 'year'];
const CRON_WORDS = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];
const EVERY_MOST_S = 31_536_000;

/** One sentence that says what is wrong with a schedule, and what to do; null: nothing. */
export function scheduleFault(schedule: GoalSchedule): string | null {
  return whenFault(schedule) ?? zoneFault(schedule.timezone);
}

function whenFault(schedule: GoalSchedule): string | null {
  if ('everySeconds' in schedule) {
    const { everySeconds: s } = schedule;
    const isFit = Number.isInteger(s) && s >= 1 && s <= EVERY_MOST_S;
    return isFit ? null : `A goal may begin anew each 1 to ${EVERY_MOST_S} seconds: give a whole number of them.`;
  }
  return 'cron' in schedule ? cronFault(schedule.cron) : calendarFault(schedule.calendar);
}

function cronFault(cron: string): string | null {
  if (CRON_WORDS.includes(cron.trim())) return null;
  const fields = cron.trim().split(/\s+/);
  const names = CRON.slice(fields.length === 7 ? 0 : 1).slice(0, fields.length);
  if (fields.length < 5 || fields.length > 7)
    return `The cron expression "${cron}" can't be read: write minute, hour, day of month, month and day of week, as in "30 2 * * MON-FRI".`;
  const wrong = names.find((name, n) => rangesOf(name, fields[n] ?? '') === null);
  if (wrong === undefined) return null;
  return `The cron expression "${cron}" can't be read at its ${wrong}: write *, or ${fieldWords(wrong)}.`;
}

function calendarFault(calendar: Readonly<Partial<Record<CalendarField, string | number | undefined>>>): string | null {
  const fields = Object.entries(calendar).filter(([, written]) => written !== undefined);
  if (fields.length === 0) return 'The calendar is empty: name at least one field, as in hour=2.';
  for (const [name, written] of fields) {
    if (!isField(name)) return `A calendar has no ${name}: it has ${Object.keys(FIELDS).join(', ')}.`;
    if (rangesOf(name, written ?? '') === null)
      return `The ${name} of the calendar can't be "${written}": write *, or ${fieldWords(name)}.`;
  }
  return null;
}

function isField(name: string): name is FieldName {
  return Object.hasOwn(FIELDS, name);
}

function zoneFault(zone: string | undefined): string | null {
  if (zone === undefined) return null;
  const fault = `There is no time zone ${zone}: name one as the IANA list has it, such as Europe/Berlin.`;
  if (!/^[A-Za-z][\w+/-]*$/.test(zone)) return fault;
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return null;
  } catch {
    return fault;
  }
}

/** As the engine's client wants it; of a schedule without a fault. */
export function specOf(schedule: GoalSchedule): ScheduleSpec {
  const zone = schedule.timezone === undefined ? {} : { timezone: schedule.timezone };
  if ('everySeconds' in schedule) return { intervals: [{ every: `${schedule.everySeconds}s` }], ...zone };
  if ('cron' in schedule) return { cronExpressions: [schedule.cron], ...zone };
  const fields = Object.entries(schedule.calendar).flatMap(([name, written]) =>
    isField(name) && written !== undefined
      ? [[name, (rangesOf(name, written) ?? []).flatMap((r) => asSpec(name, r))]]
      : [],
  );
  return { calendars: [Object.fromEntries(fields) as CalendarSpec], ...zone };
}

const MONTH_NAMES = [
  '',
  ...'JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER'.split(' '),
];
const DAY_NAMES = 'SUNDAY MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY'.split(' ');

/** The client takes months and days by name only. */
function asSpec(name: FieldName, { start, end, step }: Range): unknown[] {
  if (name === 'month') return [{ start: MONTH_NAMES[start], end: MONTH_NAMES[end], step }];
  if (name !== 'dayOfWeek') return [{ start, end, step }];
  const days = Array.from({ length: Math.floor((end - start) / step) + 1 }, (_, n) => (start + n * step) % 7);
  return [...new Set(days)].map((day) => DAY_NAMES[day]);
}

/** For people. */
export function scheduleWords(schedule: GoalSchedule): string {
  const zone = schedule.timezone === undefined ? '' : ` in ${schedule.timezone}`;
  if ('everySeconds' in schedule) return `every ${schedule.everySeconds} s`;
  if ('cron' in schedule) return `cron ${schedule.cron}${zone}`;
  const fields = Object.entries(schedule.calendar).map(([name, written]) => `${name}=${written}`);
  return `calendar ${fields.join(' ')}${zone}`;
}
