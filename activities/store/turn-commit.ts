import type { Effect } from '../../workflows/core/tools.ts';
import type { Usage } from '../../workflows/core/sample-outcome.ts';
import { eq } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import type { NewEvent } from './events.ts';
import type { Fence } from './fence.ts';
import { isUniqueViolation } from './errors.ts';
import { storableDeep } from './hash.ts';
import { commit as commitTable } from './schema.ts';
import { Statement } from './statement.ts';
import type { Link } from './transcript.ts';

export interface NewCall {
  readonly key: string;
  readonly ordinal: number;
  readonly providerCallId: string;
  readonly tool: string;
  readonly effect: Effect;
  readonly arguments: string;
  readonly argumentsHash: string;
  /** Set where the call is answered without running: bad arguments, an unknown tool, cut off, a final answer. */
  readonly answer: { readonly status: 'ok' | 'error'; readonly text: string; readonly note: string | null } | null;
}

/** A request that is about to be sent. */
export interface OpenedRequest {
  readonly model: string;
  readonly outputCapTokens: number;
  /** The most it may cost; null where there is no price. */
  readonly worstMicroUsd: number | null;
}

/** One commit that moves a turn: everything in it happens, once, or nothing does. */
export interface TurnCommit {
  readonly fence: Fence;
  /** The commit's key and what it is to be remembered by; null for one that may be repeated. */
  readonly keyed: { readonly key: string; readonly result: unknown } | null;
  /** Nothing is written while this sample has an answer, or an attempt that is still open. */
  readonly newAttemptOf: string | null;
  readonly step: number;
  /** The head that it builds on, where it is worth nothing on another one; null for what may be written on any. */
  readonly base: string | null;
  readonly links: readonly Link[];
  /** Inputs and the messages they became. */
  readonly joined: readonly { readonly input: string; readonly message: string }[];
  readonly calls: readonly NewCall[];
  readonly opens: ({ readonly attempt: string } & OpenedRequest) | null;
  readonly closes: {
    readonly attempt: string;
    readonly outcome: string;
    readonly wasted: boolean;
    readonly usage: Usage;
    /** Whether text of it was shown meanwhile, which the message now takes the place of. */
    readonly wasShown: boolean;
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

/** A single statement with just the parts that this commit needs: a step should cost the store as little as it can. */
export async function commitTurn<T>(db: Db, commit: TurnCommit): Promise<Committed<T>> {
  const { keyed, newAttemptOf } = commit;
  const key = keyed?.key ?? newAttemptOf;
  try {
    const [row] = await statementOf(commit, key).run<Row>(db);
    if (row?.fenced) return { kind: 'committed', plan: row.plan === true };
    // What was committed while this statement waited is not in its snapshot: look once more.
    const prior = row?.prior ?? (key === null ? null : await findCommit<T>(db, key));
    if (prior) return { kind: 'done_before', result: prior as T };
    return row && row.open > 0 ? { kind: 'attempts_open' } : { kind: 'refused' };
  } catch (error) {
    if (!keyed || !isUniqueViolation(error, 'commit_pkey')) throw error;
    // Two attempts came to the end at the same moment; the other one's row stands now.
    return await commitTurn(db, commit);
  }
}

function statementOf(commit: TurnCommit, key: string | null): Statement {
  const { keyed, newAttemptOf, links, joined, calls, opens, closes, events } = commit;
  const to = new Statement('commit_turn');
  if (key !== null) to.with('prior', `select result from pawl.commit where key = ${to.value(key)}`);
  if (newAttemptOf !== null) {
    const sample = to.value(newAttemptOf);
    to.with('attempts', `select count(*)::int as open from pawl.usage where sample = ${sample} and closed_at is null`);
  }
  addFence(to, commit);
  if (keyed) addClaim(to, commit, keyed);
  if (links.length > 0) addLinks(to, links);
  if (joined.length > 0) addJoined(to, joined);
  if (calls.length > 0) addCalls(to, commit);
  if (opens) addOpened(to, commit, opens);
  if (closes) addClosed(to, closes);
  if (closes?.wasShown)
    to.with('shown', `delete from pawl.delta using fence where attempt = ${to.value(closes.attempt)}`);
  if (events.length > 0) addEvents(to, events);
  return to.select(`exists (select from fence) as fenced, (select plan from fence) as plan,
    ${to.has('prior') ? '(select result from prior)' : 'null'} as prior,
    ${to.has('attempts') ? '(select open from attempts)' : '0'} as open`);
}

/** Holds only for an open turn and its newest generation; everything else in the statement hangs on it. */
function addFence(to: Statement, { fence, base, links }: TurnCommit): void {
  const [turn, run] = [to.value(fence.turn), to.value(fence.run)];
  const moved = links.length > 0 ? to.value(links[links.length - 1]?.hash) : null;
  const heads = [base === null ? null : to.value(base), moved].filter((head) => head !== null);
  to.with(
    'fence',
    `update pawl.turn t set head = ${moved ?? 't.head'}
    from pawl.turn_run r, pawl.session own
    where t.id = ${turn} and t.ended_at is null and own.id = t.session
      and r.turn = t.id and r.run = ${run} and r.generation = t.generation
      ${to.has('prior') ? 'and not exists (select from prior)' : ''}
      ${to.has('attempts') ? 'and (select open from attempts) = 0' : ''}
      -- A snapshot taken while an earlier attempt commits must not move the head back; only a reset may.
      ${heads.length > 0 ? `and (r.generation > 0 or t.head in (${heads.join(', ')}))` : ''}
    returning t.id, t.session, own.stream, own.plan`,
  );
}

function addClaim(to: Statement, { fence }: TurnCommit, { key, result }: NonNullable<TurnCommit['keyed']>): void {
  to.with(
    'claim',
    `insert into pawl.commit (key, turn, run, result)
    select ${to.value(key)}, fence.id, ${to.value(fence.run)}, ${to.json(result)} from fence`,
  );
}

function addLinks(to: Statement, links: readonly Link[]): void {
  const rows = to.json(links.map(({ hash, parent, depth, tokens, body }) => ({ hash, parent, depth, tokens, body })));
  to.with(
    'links',
    `insert into pawl.message (hash, parent, kind, body, depth, tokens)
    select link.hash, link.parent, link.body->>'kind', link.body, link.depth, link.tokens
    from fence, jsonb_to_recordset(${rows}) as link(hash text, parent text, body jsonb, depth int, tokens int)
    on conflict do nothing`,
  );
}

function addJoined(to: Statement, joined: TurnCommit['joined']): void {
  to.with(
    'joined',
    `update pawl.input i set message = item.message
    from fence, jsonb_to_recordset(${to.json(joined)}) as item(input text, message text) where i.id = item.input`,
  );
}

/** Calls of the message that this commit ends with, and the ledger's rows of those that act. */
function addCalls(to: Statement, { calls, links, step }: TurnCommit): void {
  const assistant = to.value(links[links.length - 1]?.hash);
  to.with(
    'calls',
    `insert into pawl.call (key, turn, assistant, ordinal, step, provider_call_id, tool, effect, arguments,
                            arguments_hash, status, result, note, finished_at)
    select item.key, fence.id, ${assistant}, item.ordinal, ${to.value(step)}::int, item."providerCallId", item.tool,
           item.effect, item.arguments, item."argumentsHash", item.answer->>'status',
           item.answer->>'text', item.answer->>'note', case when item.answer is not null then clock_timestamp() end
    from fence, jsonb_to_recordset(${to.json(storableDeep(calls))}) as item(key text, ordinal int,
         "providerCallId" text, tool text, effect text, arguments text, "argumentsHash" text, answer jsonb)
    on conflict do nothing returning key, turn, tool, effect, arguments_hash, status`,
  );
  if (calls.every((call) => call.effect === 'none')) return;
  to.with(
    'effects',
    `insert into pawl.effect (key, turn, tool, effect, policy_version, arguments_hash, state)
    select key, turn, tool, effect, 1, arguments_hash, 'intended' from calls where effect <> 'none' and status is null
    on conflict do nothing`,
  );
}

function addOpened(to: Statement, commit: TurnCommit, opens: NonNullable<TurnCommit['opens']>): void {
  to.with(
    'opened',
    `insert into pawl.usage (attempt, sample, session, turn, step, model, output_cap_tokens, worst_micro_usd)
    select ${to.value(opens.attempt)}, ${to.value(commit.newAttemptOf)}, fence.session, fence.id,
           ${to.value(commit.step)}::int, ${to.value(opens.model)}, ${to.value(opens.outputCapTokens)}::int,
           ${to.value(opens.worstMicroUsd)}::int8 from fence`,
  );
}

function addClosed(to: Statement, { attempt, outcome, wasted, usage }: NonNullable<TurnCommit['closes']>): void {
  const told = isTold(usage);
  const tokens = (count: number) => `${to.value(told ? count : null)}::int`;
  to.with(
    'closed',
    `update pawl.usage u
    set outcome = ${to.value(outcome)}, wasted = ${to.value(wasted)}, complete = ${to.value(usage.complete)},
        closed_at = clock_timestamp(), input_tokens = ${tokens(usage.inputTokens)},
        cached_tokens = ${tokens(usage.cachedTokens)}, output_tokens = ${tokens(usage.outputTokens)},
        reasoning_tokens = ${tokens(usage.reasoningTokens)},
        cost_micro_usd = ${to.value(told ? usage.microUsd : null)}::int8
    from fence where u.attempt = ${to.value(attempt)}`,
  );
}

/** A usage that says nothing at all is kept as unknown, never as zero. */
export function isTold({ complete, inputTokens, outputTokens }: Usage): boolean {
  return complete || inputTokens > 0 || outputTokens > 0;
}

function addEvents(to: Statement, events: readonly NewEvent[]): void {
  const count = `${to.value(events.length)}::int`;
  to.with(
    'counter',
    `update pawl.session root set event_seq = root.event_seq + ${count} from fence where root.id = fence.stream
    returning root.id as stream, root.event_seq - ${count} as base`,
  );
  to.with(
    'events',
    `insert into pawl.event (stream, seq, key, session, turn, layer, kind, body)
    select counter.stream, counter.base + item.ordinality, item.value->>'key', fence.session, item.value->>'turn',
           item.value->'event'->>'layer', item.value->'event'->>'kind', item.value->'event'
    from counter, fence, jsonb_array_elements(${to.json(storableDeep(events))}) with ordinality item
    on conflict (stream, key) do nothing`,
  );
}
