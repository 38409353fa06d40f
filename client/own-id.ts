import { storable } from '../activities/store/hash.ts';
import { BadId } from './faults.ts';

const MOST_CHARS = 500;

/** What is wrong with an id of a caller's own, and what to do; null: nothing. */
export function idFault(id: string): string | null {
  if (id === '' || id.length > MOST_CHARS) return `an id of your own has 1 to ${MOST_CHARS} characters`;
  return storable(id) === id ? null : 'an id of your own has no NUL and no unpaired surrogate in it: take another one';
}

/** Throws BadId. What could not be kept as it is might name something else later. */
export function refuseBadId(id: string | undefined): void {
  const fault = id === undefined ? null : idFault(id);
  if (fault !== null) throw new BadId(`This id can't be kept: ${fault}.`);
}
