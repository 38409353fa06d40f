import type { Deps } from '../deps.ts';
import { ChainBroken, type Link, loadChain } from '../store/transcript.ts';

/** What the model said last on the chain of `head`; null where it never said anything. */
export async function lastTextOf({ database, chains }: Pick<Deps, 'database' | 'chains'>, head: string) {
  const chain = await loadChain(database.db, chains, head).catch(nothingIfBroken);
  const last = chain.findLast(({ body }) => body.kind === 'assistant' && body.text.trim() !== '');
  return last?.body.text ?? null;
}

function nothingIfBroken(error: unknown): readonly Link[] {
  if (error instanceof ChainBroken) return [];
  throw error;
}
