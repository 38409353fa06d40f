import { describe, expect, test, vi } from 'vitest';
import type { GoalSchedule } from '../../../activities/store/schema.ts';
import type { Output } from '../../../client/cli/output.ts';
import { runCommand } from '../../../client/cli/run.ts';
import { toToolCheck } from '../../../client/cli/tool-check-flag.ts';
import { scheduleFault, scheduleWords, specOf } from '../../../client/schedule-spec.ts';

const CRON_HELP = 'write minute, hour, day of month, month and day of week, as in "30 2 * * MON-FRI".';

describe('a schedule', () => {
  test.each<[GoalSchedule]>([
    [{ everySeconds: 1 }],
    [{ cron: '30 2 * * *', timezone: 'Europe/Berlin' }],
    [{ cron: '*/15 8-18/2,20 1,15 jan-mar MON-FRI 2027' }],
    [{ cron: '0 0 12 * * 7 *' }],
    [{ cron: '@daily' }],
    [{ calendar: { hour: '*', dayOfWeek: 'saturday', month: 12, year: '2027-2030' }, timezone: 'UTC' }],
  ])('%j is one', (schedule) => {
    expect(scheduleFault(schedule)).toBeNull();
  });

  test.each<[GoalSchedule, string]>([
    [{ everySeconds: 0.5 }, 'A goal may begin anew each 1 to 31536000 seconds: give a whole number of them.'],
    [{ cron: 'tomorrow' }, `The cron expression "tomorrow" can't be read: ${CRON_HELP}`],
    [{ cron: '@every 5m' }, `The cron expression "@every 5m" can't be read: ${CRON_HELP}`],
    [{ cron: '60 * * * *' }, 'The cron expression "60 * * * *" can\'t be read at its minute: write *, or 0 to 59.'],
    [
      { cron: '0 2 * * FUN' },
      'The cron expression "0 2 * * FUN" can\'t be read at its dayOfWeek: write *, or 0 to 7, or SUN and so on.',
    ],
    [
      { cron: '0 2 31-1 * *' },
      'The cron expression "0 2 31-1 * *" can\'t be read at its dayOfMonth: write *, or 1 to 31.',
    ],
    [{ calendar: {} }, 'The calendar is empty: name at least one field, as in hour=2.'],
    [{ calendar: { hour: 24 } }, 'The hour of the calendar can\'t be "24": write *, or 0 to 23.'],
    [{ calendar: { month: 'MA' } }, 'The month of the calendar can\'t be "MA": write *, or 1 to 12, or JAN and so on.'],
    [
      { calendar: { day: 1 } as Readonly<Record<string, number>> },
      'A calendar has no day: it has second, minute, hour, dayOfMonth, month, dayOfWeek, year.',
    ],
    ...(['Mars/Olympus', '+02:00', ''] as const).map((timezone): [GoalSchedule, string] => [
      { cron: '@daily', timezone },
      `There is no time zone ${timezone}: name one as the IANA list has it, such as Europe/Berlin.`,
    ]),
  ])('%j: %s', (schedule, sentence) => {
    expect(scheduleFault(schedule)).toBe(sentence);
  });

  test('a calendar is told to the engine in its own words, and to people in ours', () => {
    const calendar = { hour: '8-18/5,20', month: '11-12', dayOfWeek: 'FRI-SUN' };
    const schedule = { calendar: { ...calendar, dayOfWeek: '5-7' }, timezone: 'Europe/Berlin' };
    expect(specOf(schedule)).toEqual({
      calendars: [
        {
          hour: [
            { start: 8, end: 18, step: 5 },
            { start: 20, end: 20, step: 1 },
          ],
          month: [{ start: 'NOVEMBER', end: 'DECEMBER', step: 1 }],
          dayOfWeek: ['FRIDAY', 'SATURDAY', 'SUNDAY'],
        },
      ],
      timezone: 'Europe/Berlin',
    });
    expect(scheduleWords(schedule)).toBe('calendar hour=8-18/5,20 month=11-12 dayOfWeek=5-7 in Europe/Berlin');
    // Sunday is the first day by its name.
    expect(scheduleFault({ calendar })).toContain('The dayOfWeek of the calendar can\'t be "FRI-SUN"');
  });
});

describe('a check by a tool', () => {
  test.each([
    ['ci_status', { tool: 'ci_status', arguments: {} }],
    [' ci_status {"branch": "main"} ', { tool: 'ci_status', arguments: { branch: 'main' } }],
    ['{"tool": "a", "expect": null}', { tool: 'a', expect: null }],
  ])('%s', (text, wanted) => {
    expect(toToolCheck(text)).toEqual(wanted);
  });

  test.each(['', '{}', 'ci_status main', 'ci_status [1]', '{"tool": "a", "arguments": 1}', '{"tool": "a", "json": 1}'])(
    '%j says how it is written',
    (text) => {
      expect(() => toToolCheck(text)).toThrow(/^Write a tool and its arguments/);
    },
  );
});

const HOW = /Write a tool and its arguments, as in 'ci_status/;

test.each<[readonly string[], RegExp]>([
  [['--every', '60', '--cron', '@daily'], /^Give one of --every, --cron and --calendar\.$/],
  [['--timezone', 'UTC'], /^--timezone goes with --cron or --calendar\.$/],
  [['--paused'], /^--paused goes with --every, --cron or --calendar\.$/],
  [['--every', '0.5'], /It is not a whole number of seconds above 0\.$/],
  [['--calendar', 'at night'], /Write fields and what they are, as in "dayOfWeek=MONDAY hour=2"\.$/],
  [['--check-tool', 'ci_status main'], HOW],
])('`pawl goal create x` with %j: one sentence, exit code 2', async (flags, sentence) => {
  let err = '';
  const output: Output = { write: () => {}, line: () => {}, json: () => {}, note: (line) => void (err += `${line}\n`) };
  // What commander says of one option, it writes itself.
  const written = vi.spyOn(process.stderr, 'write').mockImplementation((text) => (err += String(text)) !== '');
  const code = await runCommand(['goal', 'create', 'x', ...flags], output).finally(() => written.mockRestore());
  expect(code).toBe(2);
  expect(err.trimEnd()).toMatch(sentence);
  expect(err.trimEnd().split('\n')).toHaveLength(1);
});
