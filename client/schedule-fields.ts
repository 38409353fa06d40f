/** Values from `start` to `end`, each `step`. */
export interface Range {
  readonly start: number;
  readonly end: number;
  readonly step: number;
}

interface Field {
  readonly least: number;
  readonly most: number;
  /** Words for the values from `least` on. */
  readonly names?: readonly string[];
}

const MONTHS = 'JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER'.split(' ');
const DAYS = 'SUNDAY MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY'.split(' ');

/** The fields of a calendar, and of a cron expression. */
export const FIELDS = {
  second: { least: 0, most: 59 },
  minute: { least: 0, most: 59 },
  hour: { least: 0, most: 23 },
  dayOfMonth: { least: 1, most: 31 },
  month: { least: 1, most: 12, names: MONTHS },
  /** 7 is Sunday, too. */
  dayOfWeek: { least: 0, most: 7, names: DAYS },
  year: { least: 2000, most: 2100 },
} as const satisfies Readonly<Record<string, Field>>;

export type FieldName = keyof typeof FIELDS;

/** What stands in one field: `*`, or values, ranges and steps, as in `8-18/2,20` or `MON-FRI`. Null: it can't be read. */
export function rangesOf(name: FieldName, written: string | number): readonly Range[] | null {
  const ranges = String(written)
    .split(',')
    .map((part) => rangeOf(FIELDS[name], part.trim()));
  return ranges.every((range) => range !== null) ? ranges : null;
}

function rangeOf(field: Field, part: string): Range | null {
  const [, from = '', to, by] = /^(\*|\w+)(?:-(\w+))?(?:\/(\d{1,4}))?$/.exec(part) ?? [];
  const step = by === undefined ? 1 : Number(by);
  const start = from === '*' ? field.least : valueOf(field, from);
  // A single value with a step goes on to the end, as cron has it.
  const last = from === '*' || (by !== undefined && to === undefined) ? field.most : start;
  const end = to === undefined ? last : valueOf(field, to);
  if (start === null || end === null || end < start || step < 1 || (from === '*' && to !== undefined)) return null;
  return { start, end, step };
}

function valueOf({ least, most, names = [] }: Field, text: string): number | null {
  if (/^\d{1,4}$/.test(text)) return Number(text) >= least && Number(text) <= most ? Number(text) : null;
  const at = text.length < 3 ? -1 : names.findIndex((name) => name.startsWith(text.toUpperCase()));
  return at < 0 ? null : at + least;
}

/** What may stand in a field, for people. */
export function fieldWords(name: FieldName): string {
  const field: Field = FIELDS[name];
  const words = field.names ? `, or ${field.names[0]?.slice(0, 3)} and so on` : '';
  return `${field.least} to ${field.most}${words}`;
}
