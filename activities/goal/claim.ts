import { z } from 'zod';
import type { AwaitedBy, Claim } from '../../workflows/core/goal/goal-state.ts';
import { parseJson } from '../model/json.ts';
import { eventHash } from '../store/goal-look.ts';
import { sha256 } from '../store/hash.ts';

export const claimInput = z
  .strictObject({
    status: z.enum(['complete', 'blocked', 'waiting']).describe('Your claim; it is judged, not taken on trust.'),
    note: z.string().trim().min(1).max(4_000).describe('The evidence, the blocker, or what you wait for.'),
    until: z.iso.datetime({ offset: true }).optional().describe('For waiting: the ISO time at which to go on.'),
    event: z.string().trim().min(1).max(200).optional().describe('For waiting: the event that ends the wait.'),
  })
  .refine(
    ({ status, until, event }) => status !== 'waiting' || until !== undefined || event !== undefined,
    'waiting needs `until`, `event`, or both',
  )
  .refine(
    ({ status, until, event }) => status === 'waiting' || (until === undefined && event === undefined),
    '`until` and `event` go with waiting',
  );

/** The claim in the arguments of a call, and how a judge reads it. */
export function claimOf(args: string): { readonly claim: Claim; readonly said: string } | null {
  const parsed = claimInput.safeParse(parseJson(args));
  if (!parsed.success) return null;
  const { status, note, until, event } = parsed.data;
  const said = `${status}${until ? ` until ${until}` : ''}${event ? ` for ${event}` : ''}: ${note}`;
  switch (status) {
    case 'complete':
      return { claim: { kind: 'complete' }, said };
    case 'blocked':
      return { claim: { kind: 'blocked', blocker: wordsHash(note) }, said };
    case 'waiting':
      return { claim: { kind: 'waiting', awaited: awaitedOf(until, event) }, said };
  }
}

/** Nothing to wait for: the time is now. */
export function awaitedOf(until: string | undefined, event: string | undefined): AwaitedBy {
  const at = until === undefined ? Number.NaN : Date.parse(until);
  const untilMs = Number.isNaN(at) ? null : at;
  if (event !== undefined && event.trim() !== '') return { on: 'event', event: eventHash(event), untilMs };
  return { on: 'time', untilMs: untilMs ?? Date.now() };
}

/** Tells the same words from others, whatever their case, spaces and numbers are. */
export function wordsHash(text: string): string {
  const words = text.toLowerCase().replaceAll(/\d+/g, '#').replaceAll(/\s+/g, ' ').trim();
  return sha256('words', words).slice(0, 16);
}
