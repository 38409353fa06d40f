import type { SessionInput } from '../inputs.ts';
import type { Runs } from '../runs.ts';
import { duration, oneLine } from './format.ts';
import { TENANT } from './ticket.ts';
import { UsageError } from './usage-error.ts';

/** Inputs of a session, or of that of a job, oldest first; throws where there is none. */
export async function* everyInput(runs: Runs, of: string, waiting: boolean): AsyncGenerator<SessionInput> {
  let cursor: string | undefined;
  do {
    const page = (await runs.inputs(TENANT, of, { cursor, limit: 200, waiting })) ?? noSuchSession(of);
    yield* page.inputs;
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
}

const TEXT_WIDTH = 80;

/** Its id, what has become of it, who sent it and when, and how it begins. */
export function inputLine(each: SessionInput, nowMs: number): string {
  const by = each.by === null ? '' : ` by ${oneLine(each.by, 40)}`;
  const age = duration(nowMs - Date.parse(each.createdAt));
  return `${each.id}  ${each.kind}  ${outcomeWords(each)}\n  sent${by} ${age} ago: ${oneLine(each.text, TEXT_WIDTH)}`;
}

function outcomeWords({ status, turn, end, lock, dropped, isLeftOver }: SessionInput): string {
  const by = dropped?.by ? ` by ${oneLine(dropped.by, 40)}` : '';
  const why = dropped?.why ? `: “${oneLine(dropped.why, 80)}”` : '';
  switch (status) {
    case 'queued':
      if (lock) return `queued, edited by ${oneLine(lock.by, 40)} until ${lock.until}`;
      return isLeftOver ? 'queued, goes first: a turn ended without it' : 'queued';
    case 'forwarded':
      return `with turn ${turn ?? ''}`;
    case 'consumed':
      return `heard by turn ${turn ?? ''}${end === null ? '' : ` (${end})`}`;
    case 'withdrawn':
      return `withdrawn${by}${why}`;
    case 'dropped_by_cancel':
      return `dropped when its turn was cancelled${by}${why}`;
    case 'hook_blocked':
      return `kept back by a hook${why}`;
  }
}

/** Those that wait for a turn, or that a turn has been given and has not taken in; not what a turn was opened with. */
export async function waitingInputs(runs: Runs, of: string): Promise<SessionInput[]> {
  const waiting: SessionInput[] = [];
  for await (const each of everyInput(runs, of, true)) {
    if (each.status === 'queued' || each.kind !== 'prompt') waiting.push(each);
  }
  return waiting;
}

/** As a part of what is shown of a session or a job; nothing where none waits. */
export function waitingLines(waiting: readonly SessionInput[], nowMs: number): string[] {
  if (waiting.length === 0) return [];
  return [
    '',
    'inputs that wait',
    ...waiting.flatMap((each) => inputLine(each, nowMs).split('\n')).map((line) => `  ${line}`),
  ];
}

export function noSuchSession(of: string): never {
  throw new UsageError(`There is no session or job ${of}; \`pawl sessions\` lists the sessions.`);
}
