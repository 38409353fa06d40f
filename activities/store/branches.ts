import { sql } from 'drizzle-orm';
import type { Tx } from './database.ts';
import type { EffectState } from './schema.ts';
import { ancestorsAmong } from './transcript.ts';

/** Names the empty chain before the first message. */
export const START = 'start';

const HASH_OR_PREFIX = /^[0-9a-f]{8,64}$/;

/** A message that was ever on a chain of this session; where a fork or a rewind goes. */
export interface Place {
  readonly hash: string;
  readonly depth: number;
}

/**
 * The message that a hash, or the beginning of one (8 digits at least), names among everything that this session's
 * heads reach, those of rewound branches too. Null: none, or more than one.
 */
export async function findPlace(tx: Tx, session: string, named: string): Promise<Place | null> {
  if (!HASH_OR_PREFIX.test(named)) return null;
  const { rows } = await tx.execute<Place & Record<string, unknown>>(sql`
    with recursive heads as (
      select head from pawl.session where id = ${session}
      -- A fork that no turn has moved yet has its past only there.
      union select forked_at from pawl.session where id = ${session}
      union select head from pawl.turn where session = ${session}
      union select base_head from pawl.turn where session = ${session}
    ), back as (
      select m.hash, m.parent, m.depth from pawl.message m join heads on heads.head = m.hash
      union
      select m.hash, m.parent, m.depth from pawl.message m join back on m.hash = back.parent
    )
    select hash, depth from back where hash like ${`${named}%`} limit 2`);
  return rows.length === 1 && rows[0] ? { hash: rows[0].hash, depth: rows[0].depth } : null;
}

/** A call whose request is not on the chain, and that may have changed the world all the same. */
export interface EffectBeyond {
  readonly tool: string;
  readonly arguments: string;
  readonly state: EffectState;
}

/** What the ledger has of this session, and of those it was forked from, that the chain of `head` does not show. */
export async function effectsBeyond(tx: Tx, session: string, head: string): Promise<readonly EffectBeyond[]> {
  const { rows } = await tx.execute<EffectBeyond & { assistant: string } & Record<string, unknown>>(sql`
    with recursive line as (
      select id, forked_from from pawl.session where id = ${session}
      union select s.id, s.forked_from from pawl.session s join line on s.id = line.forked_from
    )
    select e.tool, c.arguments, e.state, c.assistant
    from pawl.effect e join pawl.call c on c.key = e.key join pawl.turn t on t.id = e.turn
    where t.session in (select id from line)
      and e.state not in ('intended', 'settled_absent') and coalesce(e.undo, '') <> 'undone'
    order by e.created_at, e.key`);
  const shown = await ancestorsAmong(tx, head, [...new Set(rows.map((row) => row.assistant))]);
  return rows
    .filter((row) => !shown.has(row.assistant))
    .map(({ tool, arguments: args, state }) => ({ tool, arguments: args, state }));
}

const SHOWN = { calls: 50, characters: 200 } as const;

const STATES: Readonly<Record<EffectState, string>> = {
  intended: 'it has not run',
  settled_absent: 'it had no effect',
  started: 'whether it took effect is not known',
  unknown: 'whether it took effect is not known',
  abandoned: 'whether it took effect is not known',
  failed: 'it failed, and may have had a part of its effect',
  succeeded: 'it took effect',
  settled_done: 'it took effect',
};

/** The newest of them, a line each; the model reads this where they would have been. */
export function effectLines(effects: readonly EffectBeyond[]): readonly string[] {
  const newest = effects.slice(-SHOWN.calls);
  const more = effects.length - newest.length;
  return [
    ...(more > 0 ? [`- ${more} earlier calls, which are not listed`] : []),
    ...newest.map(({ tool, arguments: args, state }) => `- ${tool} ${oneLine(args)}: ${STATES[state]}`),
  ];
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length <= SHOWN.characters ? line : `${line.slice(0, SHOWN.characters - 1).toWellFormed()}…`;
}
