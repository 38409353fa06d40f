import { randomBytes } from 'node:crypto';

/** A new id: sorts by time of making (ms), then 80 random bits. */
export function newId(
  prefix: 'job' | 'ses' | 'in' | 'att' | 'can' | 'tok' | 'wrk' | 'pln' | 'evt' | 'goal' | 'wk' | 'cmd',
): string {
  const time = Date.now().toString(36).padStart(9, '0');
  return `${prefix}_${time}${randomBytes(10).toString('hex')}`;
}
