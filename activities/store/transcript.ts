import { sql } from 'drizzle-orm';
import type { Message } from '../../workflows/core/transcript.ts';
import type { Db, Tx } from './database.ts';
import { messageHash, storableDeep } from './hash.ts';
import { message as messageTable } from './schema.ts';

/** A message in its place on a chain. */
export interface Link {
  readonly hash: string;
  readonly parent: string;
  readonly depth: number;
  readonly tokens: number;
  readonly body: Message;
}

const CACHE_LINKS = 20_000;

/** The last links this process saw: immutable, so never stale. Oldest out first. */
export class ChainCache {
  readonly #links = new Map<string, Link>();

  get(hash: string): Link | undefined {
    return this.#links.get(hash);
  }

  add(links: readonly Link[]): void {
    for (const link of links) {
      this.#links.delete(link.hash);
      this.#links.set(link.hash, link);
    }
    for (const hash of this.#links.keys()) {
      if (this.#links.size <= CACHE_LINKS) break;
      this.#links.delete(hash);
    }
  }
}

/** The chain that ends in `head`, oldest first, from the newest compaction on. */
export async function loadChain(db: Db | Tx, cache: ChainCache, head: string): Promise<readonly Link[]> {
  const chain: Link[] = [];
  let at: string | null = head;
  while (at !== null) {
    const cached: Link | undefined = cache.get(at);
    const links: readonly Link[] = cached ? [cached] : await readBack(db, at);
    cache.add(links);
    chain.push(...links);
    const last: Link | undefined = links[links.length - 1];
    at = last === undefined || last.body.kind === 'compaction' ? null : last.parent;
  }
  return chain.reverse();
}

const READ_AT_ONCE = 200;

/** Newest first; empty at the root. */
async function readBack(db: Db | Tx, from: string): Promise<readonly Link[]> {
  const { rows } = await db.execute<Link & Record<string, unknown>>(sql`
    with recursive back as (
      select hash, parent, depth, tokens, body, kind, 1 as n from pawl.message where hash = ${from}
      union all
      select m.hash, m.parent, m.depth, m.tokens, m.body, m.kind, back.n + 1
      from pawl.message m join back on m.hash = back.parent
      where back.kind <> 'compaction' and back.n < ${READ_AT_ONCE}
    )
    select hash, parent, depth, tokens, body from back order by n`);
  return rows.map(({ hash, parent, depth, tokens, body }) => ({ hash, parent, depth, tokens, body }));
}

/** Puts messages behind `head`, as links; nothing is written yet. */
export function chainOn(
  head: { readonly hash: string; readonly depth: number },
  bodies: readonly Message[],
  tokensOf: (message: Message) => number,
): readonly Link[] {
  const links: Link[] = [];
  let { hash: parent, depth } = head;
  for (const raw of bodies) {
    const body = storableDeep(raw);
    depth += 1;
    const link: Link = { hash: messageHash(parent, body), parent, depth, tokens: tokensOf(body), body };
    links.push(link);
    parent = link.hash;
  }
  return links;
}

/** Writes links; one that is there already is the same message, by its hash. */
export async function writeLinks(tx: Tx, links: readonly Link[]): Promise<void> {
  if (links.length === 0) return;
  await tx
    .insert(messageTable)
    .values(
      links.map(({ hash, parent, depth, tokens, body }) => ({ hash, parent, depth, tokens, body, kind: body.kind })),
    )
    .onConflictDoNothing();
}
