import type { Message } from '../../workflows/core/transcript.ts';
import type { Link } from '../store/transcript.ts';

/** What a chain says to the model: the newest summary, the messages it kept, everything after it. */
export interface View {
  /** Hash of the summary; empty where there is none. */
  readonly root: string;
  readonly summary: (Message & { readonly kind: 'compaction' }) | null;
  /** Oldest first, without summaries. */
  readonly links: readonly Link[];
  /** How many of `links` are older than the summary. */
  readonly kept: number;
}

/** `chain` is oldest first, as `loadChain` gives it: it may begin before the summary. */
export function viewOf(chain: readonly Link[]): View {
  const at = chain.findLastIndex(({ body }) => body.kind === 'compaction');
  const link = chain[at];
  const body = link?.body;
  if (!link || body?.kind !== 'compaction') return { root: '', summary: null, links: chain, kept: 0 };
  const isKept = (older: Link) => older.body.kind !== 'compaction' && older.depth >= body.keptFrom;
  const kept = chain.slice(0, at).filter(isKept);
  return { root: link.hash, summary: body, links: [...kept, ...chain.slice(at + 1)], kept: kept.length };
}
