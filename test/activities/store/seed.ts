import { randomBytes } from 'node:crypto';
import { type SQL, sql } from 'drizzle-orm';
import { readEvents } from '../../../activities/store/events.ts';
import type { Db } from '../../../activities/store/database.ts';
import { enterRun, type Fence } from '../../../activities/store/fence.ts';
import { effectKey } from '../../../activities/store/hash.ts';
import { type AcceptedJob, type NewJob, storeInput, storeJob } from '../../../activities/store/intake.ts';
import type { AttemptIdentity } from '../../../activities/store/ledger.ts';
import { advance, type OpenTurn } from '../../../activities/store/queue.ts';
import { closeSample, openSample, type SampleClosing } from '../../../activities/store/samples.ts';
import type { StoredAgent } from '../../../activities/store/schema.ts';
import { chainOn, type Link } from '../../../activities/store/transcript.ts';
import type { NewCall } from '../../../activities/store/turn-commit.ts';
import type { InputKind } from '../../../workflows/core/inputs.ts';
import type { JournalEvent } from '../../../workflows/core/journal.ts';
import { DEFAULT_LIMITS } from '../../../workflows/core/policy.ts';
import type { SampleOutcome, TokenUsage, Usage } from '../../../workflows/core/sample-outcome.ts';
import type { Effect } from '../../../workflows/core/tools.ts';
import type { Message } from '../../../workflows/core/transcript.ts';
import { until } from '../../support/until.ts';

export const id = (prefix = 'x') => `${prefix}_${randomBytes(6).toString('hex')}`;

export const AGENT: StoredAgent = {
  name: 'tester',
  provider: 'p',
  model: 'm',
  instructions: 'You are tested.',
  tools: [],
  attended: false,
  limits: DEFAULT_LIMITS,
};

export const TOKENS: TokenUsage = {
  inputTokens: 70,
  cachedTokens: 20,
  outputTokens: 9,
  reasoningTokens: 4,
  complete: true,
};
/** At a price of 1 USD for a million tokens of any kind. */
export const USAGE: Usage = { ...TOKENS, microUsd: 79, heldMicroUsd: 0 };

export function newJob(change: Partial<NewJob> = {}): NewJob {
  return {
    tenant: 'default',
    key: id('key'),
    fingerprint: 'f',
    agent: AGENT,
    workspace: { kind: 'host', path: '/w', queue: 'q' },
    text: 'do it',
    ticket: null,
    sender: null,
    ...change,
  };
}

export async function seedJob(db: Db, change: Partial<NewJob> = {}): Promise<AcceptedJob> {
  const stored = await storeJob(db, newJob(change));
  if (stored.kind !== 'accepted') throw new Error(stored.kind);
  return stored;
}

export async function send(db: Db, session: string, kind: InputKind, text: string = kind): Promise<string> {
  const input = id('in');
  const answer = await storeInput(db, { id: input, session, kind, text, sender: null });
  if (answer !== 'accepted') throw new Error(answer);
  return input;
}

export const next = async (db: Db, session: string, started: string | null = null) =>
  (await advance(db, session, started, () => [])).next;

export interface SeededTurn extends OpenTurn {
  readonly session: string;
  readonly input: string;
  readonly fence: Fence;
}

/** An engine that must not be asked. */
export const nobodyConfirms = (): Promise<boolean> => Promise.reject(new Error('the engine was asked'));

/** Opens the next turn of a session, of a new one if none is given, and lets its first run in. */
export async function seedTurn(db: Db, session?: string): Promise<SeededTurn> {
  const owner = session ?? (await seedJob(db)).session;
  const step = await next(db, owner);
  if (step.kind !== 'start') throw new Error(`the session is ${step.kind}`);
  const fence: Fence = { turn: step.turn.turn, run: id('run'), isReset: false };
  await enterRun(db, fence, new Set(), nobodyConfirms);
  return { ...step.turn, input: step.turn.inputs[0]!, session: owner, fence };
}

export const user = (text: string, input = 'in_x'): Message => ({ kind: 'user', text, input, source: 'prompt' });

export function said(text: string, calls: readonly string[] = []): Message {
  const asked = calls.map((name, at) => ({ id: `c${at}`, name, arguments: '{}' }));
  return { kind: 'assistant', text, reasoning: '', calls: asked, provider: 'p', model: 'm', extra: {}, cut: false };
}

export const oneToken = () => 1;

export function linkOn(parent: string, body: Message, depth = 0): Link {
  return chainOn({ hash: parent, depth }, [body], oneToken)[0]!;
}

export function replyOutcome(head: string): SampleOutcome & { kind: 'reply' } {
  return { kind: 'reply', head, finish: 'stop', empty: false, calls: [], usage: USAGE };
}

/** The second commit of a sample whose reply is `text`. */
export function closing(
  turn: SeededTurn,
  change: Partial<SampleClosing> & { readonly text?: string } = {},
): SampleClosing {
  const { text = 'hi', ...rest } = change;
  const reply = linkOn(turn.head, said(text));
  return {
    fence: turn.fence,
    session: turn.session,
    attempt: id('att'),
    sample: id('sample'),
    step: 0,
    outcome: replyOutcome(reply.hash),
    isFinal: true,
    usage: USAGE,
    wasShown: true,
    reply,
    calls: [],
    events: [],
    ...rest,
  };
}

export async function open(
  db: Db,
  turn: SeededTurn,
  at: { readonly sample: string; readonly attempt: string },
  links: readonly Link[] = [],
) {
  const request = { model: 'm', outputCapTokens: 100, worstMicroUsd: 500 };
  return await openSample(db, {
    fence: turn.fence,
    session: turn.session,
    step: 0,
    request,
    base: turn.head,
    links,
    joined: [],
    events: [],
    ...at,
  });
}

export function newCall(assistant: string, ordinal: number, effect: Effect, change: Partial<NewCall> = {}): NewCall {
  const key = effectKey(assistant, ordinal);
  return {
    key,
    ordinal,
    providerCallId: `c${ordinal}`,
    tool: 'shell',
    effect,
    arguments: '{}',
    argumentsHash: 'a',
    answer: null,
    ...change,
  };
}

/** A reply that asks for one call of each effect; returns the keys of the calls. */
export async function seedCalls(db: Db, turn: SeededTurn, ...effects: readonly Effect[]): Promise<string[]> {
  const reply = linkOn(turn.head, said(id(), effects));
  const calls = effects.map((effect, ordinal) => newCall(reply.hash, ordinal, effect));
  await closeSample(db, closing(turn, { reply, calls, outcome: replyOutcome(reply.hash) }));
  return calls.map((call) => call.key);
}

export function identity(attempt: string, leaseMs = 60_000): AttemptIdentity {
  return { attempt, leaseMs, host: { host: 'h', boot: 'b' }, process: { pid: 1, started: '1' } };
}

/** Everything a stream says, oldest first. */
export async function journal(db: Db, session: string): Promise<JournalEvent[]> {
  return (await readEvents(db, session, 0, 10_000)).map((row) => row.event);
}

export const kinds = async (db: Db, session: string) => (await journal(db, session)).map((event) => event.kind);

/** Lets work pile up behind a row that is held, and go all at once: at most 8, since the pool has 10 connections. */
export async function atOnce<T>(db: Db, hold: SQL, works: readonly (() => Promise<T>)[]): Promise<T[]> {
  const { all } = await db.transaction(async (tx) => {
    await tx.execute(hold);
    const started = Promise.all(works.map((work) => work()));
    await until('all wait for the row', async () => {
      const { rows } = await db.execute<{ n: number }>(sql`
        select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
      return rows[0]?.n === works.length;
    });
    return { all: started };
  });
  return await all;
}
