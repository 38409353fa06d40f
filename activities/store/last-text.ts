import type { Database } from './database.ts';
import { type ChainCache, ChainBroken, type Link, loadChain } from './transcript.ts';

/** What a chain is read with. */
export interface ChainReader {
  readonly database: Database;
  readonly chains: ChainCache;
}

/** What the model said last on the chain of `head`; null where it never said anything. */
export async function lastTextOf({ database, chains }: ChainReader, head: string) {
  const chain = await loadChain(database.db, chains, head).catch(nothingIfBroken);
  const last = chain.findLast(({ body }) => body.kind === 'assistant' && body.text.trim() !== '');
  return last?.body.text ?? null;
}

function nothingIfBroken(error: unknown): readonly Link[] {
  if (error instanceof ChainBroken) return [];
  throw error;
}
