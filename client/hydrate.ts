import { inArray } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { call, message } from '../activities/store/schema.ts';
import type { RecordedEvent } from '../workflows/core/journal.ts';
import type { CallStatus } from '../workflows/core/tools.ts';

/** One tool call as the store has it: arguments as the model wrote them, the result once there is one. */
export interface CallText {
  readonly tool: string;
  readonly arguments: string;
  readonly status: CallStatus | null;
  readonly result: string | null;
}

/** An event with the text that its ids stand for. */
export interface TextEvent {
  readonly type: 'event';
  readonly event: RecordedEvent;
  /** What the message of a `stream.ended`, an `input.joined`, or a block of the stop gate says. */
  readonly text: string | null;
  /** The call of a `call.*` or `effect.*` event; its result only with `call.finished`. */
  readonly call: CallText | null;
}

/** Looks up the texts of a batch of events, with at most two queries. */
export async function hydrate(db: Db, events: readonly RecordedEvent[]): Promise<TextEvent[]> {
  const texts = await textsOf(db, events.flatMap(messageOf));
  const calls = await callsOf(db, events.flatMap(callOf));
  return events.map((event) => ({
    type: 'event',
    event,
    text: messageOf(event).map((hash) => texts.get(hash))[0] ?? null,
    call: callOf(event).map((key) => asOf(event, calls.get(key)))[0] ?? null,
  }));
}

/** An event says the same whenever it is read: a call has no result yet when it is asked for. */
function asOf({ event }: RecordedEvent, call: CallText | undefined): CallText | null {
  if (!call) return null;
  return event.kind === 'call.finished' ? call : { ...call, status: null, result: null };
}

function messageOf({ event }: RecordedEvent): string[] {
  switch (event.kind) {
    case 'stream.ended':
    case 'input.joined':
    case 'stop_gate.answered':
      return event.message ? [event.message] : [];
    default:
      return [];
  }
}

function callOf({ event }: RecordedEvent): string[] {
  switch (event.kind) {
    case 'call.requested':
    case 'call.started':
    case 'call.finished':
    case 'effect.settled':
    case 'effect.asked':
    case 'effect.unanswered':
    case 'effect.undoing':
    case 'effect.undone':
      return [event.key];
    default:
      return [];
  }
}

async function textsOf(db: Db, hashes: readonly string[]): Promise<Map<string, string>> {
  if (hashes.length === 0) return new Map();
  const rows = await db
    .select({ hash: message.hash, body: message.body })
    .from(message)
    .where(inArray(message.hash, [...hashes]));
  return new Map(rows.map(({ hash, body }) => [hash, body.text]));
}

async function callsOf(db: Db, keys: readonly string[]): Promise<Map<string, CallText>> {
  if (keys.length === 0) return new Map();
  const rows = await db
    .select({ key: call.key, tool: call.tool, arguments: call.arguments, status: call.status, result: call.result })
    .from(call)
    .where(inArray(call.key, [...keys]));
  return new Map(rows.map(({ key, ...text }) => [key, text]));
}
