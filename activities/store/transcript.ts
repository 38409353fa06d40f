import { sql } from 'drizzle-orm';
import type { Message } from '../../workflows/core/transcript.ts';
import type { Db, Tx } from './database.ts';
import { messageHash, rootHash, storableDeep } from './hash.ts';
import { message as messageTable } from './schema.ts';

/** A message in its place on a chain. */
export interface Link {
  readonly hash: string;
  readonly parent: string;
  readonly depth: number;
  readonly tokens: number;
  readonly body: Message;
}

const CACHE_BYTES = 48 * 1024 * 1024;
const LINK_OVERHEAD_BYTES = 600;

/** The links this process saw last: immutable, so never stale. The least recently used go first. */
export class ChainCache {
  readonly #links = new Map<string, Link>();
  readonly #limitBytes: number;
  #bytes = 0;

  constructor(limitBytes: number = CACHE_BYTES) {
    this.#limitBytes = limitBytes;
  }

  get(hash: string): Link | undefined {
    return this.#links.get(hash);
  }

  add(links: readonly Link[]): void {
    for (const link of links) {
      if (!this.#links.delete(link.hash)) this.#bytes += bytesOf(link);
      this.#links.set(link.hash, link);
    }
    for (const [hash, link] of this.#links) {
      if (this.#bytes <= this.#limitBytes) break;
      this.#links.delete(hash);
      this.#bytes -= bytesOf(link);
    }
  }
}

/** Roughly what a link holds in memory: its tokens are estimated from its bytes. */
function bytesOf({ tokens }: Link): number {
  return LINK_OVERHEAD_BYTES + tokens * 4;
}

/** A chain that can't be read to its beginning: nobody can say any more what the conversation was. */
export class ChainBroken extends Error {
  override readonly name = 'ChainBroken';
  readonly code: 'context.unknown_head' | 'context.missing_parent';

  constructor(code: ChainBroken['code']) {
    super(code);
    this.code = code;
  }
}

/** The same as `loadChain`; throws where `head` names neither a message nor the empty chain of this session, too. */
export async function loadOwnChain(
  db: Db | Tx,
  cache: ChainCache,
  owner: { readonly tenant: string; readonly session: string },
  head: string,
): Promise<readonly Link[]> {
  const chain = await loadChain(db, cache, head);
  if (chain.length === 0 && head !== rootHash(owner.tenant, owner.session)) {
    throw new ChainBroken('context.unknown_head');
  }
  return chain;
}

/**
 * The chain that ends in `head`, oldest first: from the oldest message on that the newest compaction kept. The
 * compaction lies in its place on the chain, behind what it kept. Throws ChainBroken where a message is missing.
 */
export async function loadChain(db: Db | Tx, cache: ChainCache, head: string): Promise<readonly Link[]> {
  const chain: Link[] = [];
  let compaction: Link | null = null;
  let oldestDepth = 1;
  let at: string | null = head;
  while (at !== null) {
    const cached: Link | undefined = cache.get(at);
    const links: readonly Link[] = cached ? [cached] : await readBack(db, at, oldestDepth);
    for (const link of links) {
      chain.push(link);
      if (compaction || link.body.kind !== 'compaction') continue;
      compaction = link;
      oldestDepth = Math.min(link.body.keptFrom, link.depth);
    }
    const last: Link | undefined = links[links.length - 1];
    at = last === undefined || last.depth <= oldestDepth ? null : last.parent;
  }
  const oldest = chain[chain.length - 1];
  if (oldest && oldest.depth > oldestDepth) throw new ChainBroken('context.missing_parent');
  chain.reverse();
  cache.add(chain);
  return chain;
}

const READ_AT_ONCE = 200;

/** Newest first, as far as a compaction; empty at the root. */
async function readBack(db: Db | Tx, from: string, oldestDepth: number): Promise<readonly Link[]> {
  const { rows } = await db.execute<Link & Record<string, unknown>>(sql`
    with recursive back as (
      select hash, parent, depth, tokens, body, kind, 1 as n from pawl.message where hash = ${from}
      union all
      select m.hash, m.parent, m.depth, m.tokens, m.body, m.kind, back.n + 1
      from pawl.message m join back on m.hash = back.parent
      where back.kind <> 'compaction' and back.n < ${READ_AT_ONCE} and m.depth >= ${oldestDepth}
    )
    select hash, parent, depth, tokens, body from back order by n`);
  return rows.map(({ hash, parent, depth, tokens, body }) => ({ hash, parent, depth, tokens, body }));
}

/** What a turn has put behind one of its heads by now, oldest first; nothing where that is not on its chain. */
export async function linksBehind(
  db: Db | Tx,
  turn: string,
  { hash, depth }: Pick<Link, 'hash' | 'depth'>,
): Promise<readonly Link[]> {
  const { rows } = await db.execute<Link & Record<string, unknown>>(sql`
    with recursive back as (
      select m.hash, m.parent, m.depth, m.tokens, m.body
      from pawl.turn t join pawl.message m on m.hash = t.head where t.id = ${turn} and m.depth > ${depth}
      union all
      select m.hash, m.parent, m.depth, m.tokens, m.body
      from pawl.message m join back on m.hash = back.parent where m.depth > ${depth}
    )
    select hash, parent, depth, tokens, body from back order by depth`);
  return rows[0]?.parent === hash ? rows : [];
}

/** Which of these messages lie on the chain that ends in `head`, however far back. */
export async function ancestorsAmong(db: Db | Tx, head: string, hashes: readonly string[]): Promise<Set<string>> {
  if (hashes.length === 0) return new Set();
  const { rows } = await db.execute<{ hash: string }>(sql`
    with recursive oldest as (
      select min(depth) as depth from pawl.message where hash in (${sql.join(
        hashes.map((hash) => sql`${hash}`),
        sql`, `,
      )})
    ), back as (
      select hash, parent from pawl.message where hash = ${head}
      union all
      select m.hash, m.parent from pawl.message m join back on m.hash = back.parent
      where m.depth >= (select depth from oldest)
    )
    select hash from back where hash in (${sql.join(
      hashes.map((hash) => sql`${hash}`),
      sql`, `,
    )})`);
  return new Set(rows.map((row) => row.hash));
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
