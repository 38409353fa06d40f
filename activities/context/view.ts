import type { Message } from '../../workflows/core/transcript.ts';
import type { Link } from '../store/transcript.ts';

/** What a chain says to the model: the newest summary, the messages it kept, everything after it. */
export interface View {
  readonly summary: (Message & { readonly kind: 'compaction' }) | null;
  /** Oldest first, without summaries. */
  readonly links: readonly Link[];
  /** How many of `links` are older than the summary. */
  readonly kept: number;
}

/** `chain` is oldest first, as `loadChain` gives it: it may begin before the summary. */
export function viewOf(chain: readonly Link[]): View {
  const at = chain.findLastIndex(({ body }) => body.kind === 'compaction');
  const body = chain[at]?.body;
  if (body?.kind !== 'compaction') return { summary: null, links: chain, kept: 0 };
  const isShown = (link: Link) => link.body.kind !== 'compaction';
  const kept = chain.slice(0, at).filter((link) => isShown(link) && link.depth >= body.keptFrom);
  return { summary: body, links: [...kept, ...chain.slice(at + 1)], kept: kept.length };
}
