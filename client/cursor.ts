import { contentHash } from '../activities/store/hash.ts';
import { BadPosition } from './faults.ts';

/** The whole sort key of a row: a time at microseconds, as PostgreSQL writes it, and the id. */
export interface SortKey {
  readonly createdAt: string;
  readonly id: string;
}

/** An opaque cursor that is good for one filter only. */
export function encodeCursor(key: SortKey, filter: unknown): string {
  return Buffer.from(JSON.stringify([key.createdAt, key.id, filterMark(filter)])).toString('base64url');
}

const TIME = /^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}\.\d{6}\+00$/;

export function decodeCursor(cursor: string, filter: unknown): SortKey {
  const [createdAt, id, mark] = parts(cursor);
  if (typeof createdAt !== 'string' || typeof id !== 'string' || !TIME.test(createdAt) || id.includes('\0')) {
    throw new BadPosition('The cursor is not one that a list gave out: begin again without it.');
  }
  if (mark !== filterMark(filter)) {
    throw new BadPosition('The cursor belongs to a list with another filter: begin again without it.');
  }
  return { createdAt, id };
}

function parts(cursor: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'));
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

function filterMark(filter: unknown): string {
  return contentHash(filter).slice(0, 12);
}
