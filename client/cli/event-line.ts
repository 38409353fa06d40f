import type { RunEvent } from '../follow.ts';
import { oneLine } from './format.ts';

const HIDDEN = new Set(['kind', 'layer', 'evidence', 'usage']);

/** One event as one line: number, time, kind, and its facts. Pieces of text that is being written do not show. */
export function eventLine(item: RunEvent): string | null {
  if (item.type === 'delta') return null;
  const { seq, at, event } = item.event;
  const facts = Object.entries(event)
    .filter(([name, value]) => !HIDDEN.has(name) && value !== null)
    .map(
      ([name, value]) => `${name}=${oneLine(typeof value === 'object' ? JSON.stringify(value) : String(value), 40)}`,
    );
  return `${String(seq).padStart(5)}  ${at}  ${event.kind}  ${facts.join(' ')}`.trimEnd();
}
