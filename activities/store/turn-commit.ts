import type { Effect } from '../../workflows/core/tools.ts';
import type { Usage } from '../../workflows/core/sample-outcome.ts';
import { eq } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import type { NewEvent } from './events.ts';
import type { Fence } from './fence.ts';
import { isUniqueViolation } from './errors.ts';
import { storableDeep } from './hash.ts';
import { commit as commitTable } from './schema.ts';
import type { Link } from './transcript.ts';

export interface NewCall {
  readonly key: string;
  readonly ordinal: number;
  readonly providerCallId: string;
  readonly tool: string;
  readonly effect: Effect;
  readonly arguments: string;
  readonly argumentsHash: string;
  /** Set where the call is answered without running: bad arguments, an unknown tool, cut off. */
  readonly answer: { readonly text: string; readonly note: string } | null;
}

/** One commit that moves a turn: everything in it happens, once, or nothing does. */
export interface TurnCommit {
  readonly fence: Fence;
  /** The commit's key and what it is to be remembered by; null for one that may be repeated. */
  readonly keyed: { readonly key: string; readonly result: unknown } | null;
  /** Nothing is written while this sample has an answer, or an attempt that is still open. */
  readonly newAttemptOf: string | null;
  readonly step: number;
  readonly links: readonly Link[];
  /** Inputs and the messages they became. */
  readonly joined: readonly { readonly input: string; readonly message: string }[];
  readonly calls: readonly NewCall[];
  readonly opens: { readonly attempt: string; readonly model: string; readonly outputCapTokens: number } | null;
  readonly closes: {
    readonly attempt: string;
    readonly outcome: string;
    readonly wasted: boolean;
    readonly usage: Usage;
  } | null;
  readonly events: readonly NewEvent[];
}

export type Committed<T> =
  /** `plan`: whether the session is planning. */
  | { readonly kind: 'committed'; readonly plan: boolean }
  /** Somebody committed under the same key before. */
  | { readonly kind: 'done_before'; readonly result: T }
  /** Attempts of this sample that nobody has closed; see `closeLostAttempts`. */
  | { readonly kind: 'attempts_open' }
  /** The turn has ended, or the run was replaced. */
  | { readonly kind: 'refused' };

/** What was committed under this key, if anything. */
export async function findCommit<T>(db: Db | Tx, key: string): Promise<T | null> {
  const [row] = await db.select({ result: commitTable.result }).from(commitTable).where(eq(commitTable.key, key));
  return row ? (row.result as T) : null;
}

interface Row {
  readonly fenced: boolean;
  readonly plan: boolean | null;
  readonly prior: unknown;
  readonly open: number;
}

/** A single statement, since a step of a turn should cost the store as little as it can. */
export async function commitTurn<T>(db: Db, commit: TurnCommit): Promise<Committed<T>> {
  const { fence, keyed, newAttemptOf, links, joined, calls, opens, closes, events } = commit;
  const values = [
    fence.turn,
    fence.run,
    keyed?.key ?? newAttemptOf,
    keyed === null ? null : JSON.stringify(keyed.result),
    newAttemptOf,
    links[links.length - 1]?.hash ?? null,
    JSON.stringify(links.map(({ hash, parent, depth, tokens, body }) => ({ hash, parent, depth, tokens, body }))),
    JSON.stringify(joined),
    JSON.stringify(storableDeep(calls)),
    JSON.stringify({ ...opens, step: commit.step }),
    JSON.stringify({ ...closes, ...(closes?.usage.complete ? closes.usage : { complete: false }) }),
    JSON.stringify(storableDeep(events)),
    events.length,
    links[0]?.parent ?? null,
  ];
  try {
    const { rows } = await db.$client.query<Row>({ name: 'commit_turn', text: STATEMENT, values });
    const [row] = rows;
    if (row?.fenced) return { kind: 'committed', plan: row.plan === true };
    // What was committed while this statement waited is not in its snapshot: look once more.
    const key = keyed?.key ?? newAttemptOf;
    const prior = row?.prior ?? (key === null ? null : await findCommit<T>(db, key));
    if (prior) return { kind: 'done_before', result: prior as T };
    return row && row.open > 0 ? { kind: 'attempts_open' } : { kind: 'refused' };
  } catch (error) {
    if (!keyed || !isUniqueViolation(error, 'commit_pkey')) throw error;
    // Two attempts came to the end at the same moment; the other one's row stands now.
    return await commitTurn(db, commit);
  }
}

const STATEMENT = `
with prior as (
  select result from pawl.commit where key = $3
), attempts as (
  select count(*)::int as open from pawl.usage where sample = $5 and closed_at is null
), fence as (
  update pawl.turn t set head = coalesce($6, t.head)
  from pawl.turn_run r
  where t.id = $1 and t.ended_at is null and r.turn = t.id and r.run = $2 and r.generation = t.generation
    and not exists (select from prior) and (select open from attempts) = 0
    -- A snapshot taken while an earlier attempt commits must not move the head back; only a reset may.
    and ($6::text is null or r.generation > 0 or t.head in ($6, $14))
  returning t.id, t.session
), claim as (
  insert into pawl.commit (key, turn, run, result)
  select $3, fence.id, $2, $4::jsonb from fence where $4::jsonb is not null
), links as (
  insert into pawl.message (hash, parent, kind, body, depth, tokens)
  select link.hash, link.parent, link.body->>'kind', link.body, link.depth, link.tokens
  from fence, jsonb_to_recordset($7::jsonb) as link(hash text, parent text, body jsonb, depth int, tokens int)
  on conflict do nothing
), joined as (
  update pawl.input i set message = item.message
  from fence, jsonb_to_recordset($8::jsonb) as item(input text, message text) where i.id = item.input
), calls as (
  insert into pawl.call (key, turn, assistant, ordinal, step, provider_call_id, tool, effect, arguments,
                         arguments_hash, status, result, note, finished_at)
  select item.key, fence.id, $6, item.ordinal, ($10::jsonb->>'step')::int, item."providerCallId", item.tool,
         item.effect, item.arguments, item."argumentsHash", case when item.answer is not null then 'error' end,
         item.answer->>'text', item.answer->>'note', case when item.answer is not null then clock_timestamp() end
  from fence, jsonb_to_recordset($9::jsonb) as item(key text, ordinal int, "providerCallId" text, tool text,
       effect text, arguments text, "argumentsHash" text, answer jsonb)
  on conflict do nothing returning key, turn, tool, effect, arguments_hash, status
), effects as (
  insert into pawl.effect (key, turn, tool, effect, policy_version, arguments_hash, state)
  select key, turn, tool, effect, 1, arguments_hash, 'intended' from calls where effect <> 'none' and status is null
  on conflict do nothing
), opened as (
  insert into pawl.usage (attempt, sample, session, turn, step, model, output_cap_tokens)
  select item.attempt, $5, fence.session, fence.id, item.step, item.model, item."outputCapTokens"
  from fence, jsonb_to_record($10::jsonb) as item(attempt text, step int, model text, "outputCapTokens" int)
  where item.attempt is not null
), closed as (
  update pawl.usage u
  set outcome = item.outcome, wasted = item.wasted, complete = item.complete, closed_at = clock_timestamp(),
      input_tokens = item."inputTokens", cached_tokens = item."cachedTokens",
      output_tokens = item."outputTokens", reasoning_tokens = item."reasoningTokens"
  from fence, jsonb_to_record($11::jsonb) as item(attempt text, outcome text, wasted boolean, complete boolean,
       "inputTokens" int, "cachedTokens" int, "outputTokens" int, "reasoningTokens" int)
  where u.attempt = item.attempt
), shown as (
  delete from pawl.delta using fence where attempt = $11::jsonb->>'attempt'
), counter as (
  update pawl.session root set event_seq = root.event_seq + $13::int
  from fence join pawl.session own on own.id = fence.session
  where root.id = own.stream
  returning root.id as stream, root.event_seq - $13::int as base
), events as (
  insert into pawl.event (stream, seq, key, session, turn, layer, kind, body)
  select counter.stream, counter.base + item.ordinality, item.value->>'key', fence.session, item.value->>'turn',
         item.value->'event'->>'layer', item.value->'event'->>'kind', item.value->'event'
  from counter, fence, jsonb_array_elements($12::jsonb) with ordinality item
  on conflict (stream, key) do nothing
)
select exists (select from fence) as fenced,
       (select own.plan from pawl.session own join fence on own.id = fence.session) as plan, (select result from prior) as prior, (select open from attempts) as open`;
