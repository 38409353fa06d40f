import type { Message } from '../../workflows/core/transcript.ts';
import type { Db } from '../store/database.ts';
import { type Link, linksBehind } from '../store/transcript.ts';

/**
 * What an earlier try of the same sample has put behind its head. What parts are about may read otherwise by now (a
 * sub-agent has ended, a call's outcome became known), and the first commit stands: it is found by which parts it has.
 * Null: nothing of this opening is committed.
 */
export async function openedBefore(
  db: Db,
  turn: string,
  head: { readonly hash: string; readonly depth: number },
  planned: readonly Message[],
): Promise<readonly Link[] | null> {
  const links = (await linksBehind(db, turn, head)).slice(0, planned.length);
  const isSame = planned.every((part, n) => links[n] !== undefined && partOf(links[n].body) === partOf(part));
  return isSame ? links : null;
}

/** Which part of an opening it is, whatever it says. */
function partOf(message: Message): string {
  switch (message.kind) {
    case 'tool_result':
      return `${message.kind} ${message.ordinal}`;
    case 'user':
      return `${message.kind} ${message.input}`;
    case 'reminder':
      return `${message.kind} ${message.code}`;
    case 'assistant':
    case 'directive':
    case 'interruption':
    case 'compaction':
      return message.kind;
  }
}
