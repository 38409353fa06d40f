import { createHash, createHmac } from 'node:crypto';
import type { Message } from '../../workflows/core/transcript.ts';

export function sha256(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(String(part.length)).update(':').update(part);
  return hash.digest('hex');
}

/** JSON with sorted keys: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

export function contentHash(value: unknown): string {
  return sha256(canonicalJson(value));
}

/** Parent of a session's first message, so that nothing collides between tenants or sessions. */
export function rootHash(tenant: string, session: string): string {
  return sha256('root', tenant, session);
}

export function messageHash(parent: string, message: Message): string {
  return sha256('message', parent, canonicalJson(message));
}

/** Names one call for ever: it survives resets and can't name another call. */
export function effectKey(assistant: string, ordinal: number): string {
  return sha256('effect', assistant, String(ordinal));
}

/** A lock in a workflow history: comparable within a turn, unreadable outside. */
export function lockKey(turn: string, resource: string): string {
  return createHmac('sha256', turn).update(resource).digest('hex').slice(0, 16);
}

/** Text that PostgreSQL can store: no NUL, no half surrogates. */
export function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}

export function storableDeep<T>(value: T): T {
  if (typeof value === 'string') return storable(value) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => storableDeep(item)) as T;
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [storable(key), storableDeep(inner)])) as T;
  }
  return value;
}
