import { DECIDERS, signalWords } from '../why/signal-words.ts';
import { costWords } from './cost-text.ts';
import type { Job, JobTurnEnd } from '../job.ts';
import type { OpenJob } from '../runs.ts';

/** Text of others on its way to a terminal: no escape sequences, no control characters but line break and tab. */
export function printable(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, '');
}

/** One line of at most `width` characters. */
export function oneLine(text: string, width: number): string {
  const line = printable(text).replace(/\s+/g, ' ').trim();
  return line.length <= width ? line : `${line.slice(0, width - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  return minutes < 2_880 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.floor(minutes / 1_440)} days`;
}

const TELLING = ['command', 'path', 'pattern', 'query', 'url', 'name'];

/** What a call is about, from its arguments: the command, the path, or the first text there is. */
export function argumentSummary(raw: string, width: number): string {
  let value: unknown;
  try {
    value = JSON.parse(raw.trim() === '' ? '{}' : raw);
  } catch {
    return oneLine(raw, width);
  }
  if (value === null || typeof value !== 'object') return oneLine(raw, width);
  const entries = Object.entries(value);
  const told = TELLING.map((key) => entries.find(([name]) => name === key)).find((entry) => entry !== undefined);
  const shown = told ?? entries.find(([, inner]) => typeof inner === 'string') ?? entries[0];
  if (!shown) return '';
  return oneLine(typeof shown[1] === 'string' ? shown[1] : JSON.stringify(shown[1]), width);
}

/** Why it ended and who decided that, in one line. */
export function endLine(end: JobTurnEnd): string {
  const who = end.by === null ? '' : ` (${oneLine(end.by, 60)})`;
  const why = end.why === null ? '' : `: “${oneLine(end.why, 120)}”`;
  return `${end.reason}/${end.detail}, decided by ${DECIDERS[end.decidedBy]}${who}${why} [${signalWords(end.signal)}]`;
}

/** What is said of a job that was taken, or kept, out of the queue. */
export function droppedLine({ dropped, turn }: Pick<Job, 'dropped' | 'turn'>): string {
  const by = dropped?.by ? ` by ${oneLine(dropped.by, 60)}` : '';
  const why = dropped?.why ?? '';
  if (dropped?.as === 'hook_blocked') return `kept from beginning by a hook: ${printable(why)}`;
  const before = turn === null ? 'it began' : 'it went on by itself';
  return `withdrawn before ${before}${by}${why === '' ? '' : `: “${oneLine(why, 120)}”`}`;
}

/** How a job came to rest, and what its last turn used. */
export function restLines(rest: Pick<Job, 'end' | 'dropped' | 'turn' | 'goal'>): readonly string[] {
  const { end, dropped, goal } = rest;
  return [
    ...(goal ? [`■ goal ${goal.id} is ${goal.status}`] : []),
    ...(end ? [`■ ${endLine(end)}`] : []),
    ...(dropped || !end ? [`■ ${droppedLine(rest)}`] : []),
    ...(end ? [`  ${usageLine(end)}`] : []),
  ];
}

export function usageLine({ step, usage }: JobTurnEnd): string {
  const cached = usage.cachedTokens > 0 ? ` (${usage.cachedTokens} cached)` : '';
  const known = usage.complete ? '' : ', at least';
  const cost = usage.microUsd === null ? '' : `, ${costWords(usage)}`;
  return `${step} tool rounds, ${usage.inputTokens} tokens in${cached}, ${usage.outputTokens} out${known}${cost}`;
}

export function jobLine(job: Job, nowMs: number): string {
  const age = duration(nowMs - Date.parse(job.createdAt));
  // The end of one of its turns is no end of a goal.
  const end = job.goal ? ` goal ${job.goal.status}` : job.end ? ` ${job.end.reason}/${job.end.detail}` : '';
  const ticket = job.ticket === null ? '' : `  ${oneLine(job.ticket, 50)}`;
  return `${job.id}  ${job.state}${end}  ${age} ago  ${job.agent}${ticket}`;
}

export function openJobLine({ job, engine, agrees }: OpenJob, nowMs: number): string {
  const line = jobLine(job, nowMs);
  if (engine === null) return line;
  if (engine === 'away') return `${line}  (the engine does not answer: not known whether it runs)`;
  return agrees ? line : `${line}  (the engine says ${engine}: recovery is to settle it)`;
}
