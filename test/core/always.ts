import fc from 'fast-check';
import { test } from 'vitest';
import { type Played, play } from './play.ts';

/** Holds for whole turns against a world of chance: what fails is printed with its seed. */
export function always(name: string, holds: (played: Played) => void): void {
  test(name, () => {
    fc.assert(
      fc.property(fc.gen(), (pick) => holds(play(pick))),
      { numRuns: 250 },
    );
  });
}
