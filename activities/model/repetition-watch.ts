import { POLICY } from '../../workflows/core/policy.ts';

/** When a text counts as a loop: as many repeats, over as many characters, of a period that is no longer. */
export interface RepetitionLimits {
  /** How often a period must come again after its first time. */
  readonly repeats: number;
  /** Least length of what was said again, in UTF-16 units. */
  readonly repeatedChars: number;
  /** Longest period that is seen, in UTF-16 units. */
  readonly periodMaxChars: number;
}

/** Length of the n-gram by which an earlier place is found. */
const GRAM = 16;
/** Places are kept by hash, one a slot: a collision can lose a place, and a lost one is found a character later. */
const SLOTS = 8_192;
const BASE = 31;
/** BASE ** GRAM, modulo 2 ** 32. */
const LEAVING = Array.from({ length: GRAM }).reduce<number>((power) => Math.imul(power, BASE), 1);

/**
 * Watches a stream for a tail that only repeats itself. What counts is how long the text has been equal, character
 * by character, to what stood one period earlier; the period is the distance to the last place where the newest
 * n-gram stood. Takes constant time a character and constant memory, and sees the same however the text is cut.
 */
export class RepetitionWatch {
  readonly #limits: RepetitionLimits;
  /** The last characters; its size is a power of two. */
  readonly #tail: Uint16Array;
  /** Where an n-gram stood last, counted from 1; 0 for nowhere. */
  readonly #places = new Int32Array(SLOTS);
  #length = 0;
  #hash = 0;
  /** The period that holds now; 0 for none. */
  #period = 0;
  /** How many characters it has held for. */
  #run = 0;
  #looping = false;

  constructor(limits: RepetitionLimits = POLICY.doomLoop) {
    this.#limits = limits;
    this.#tail = new Uint16Array(2 ** Math.ceil(Math.log2(limits.periodMaxChars + GRAM + 1)));
  }

  /** @returns whether the text so far ran into a loop; once true, always true. */
  feed(text: string): boolean {
    for (let n = 0; n < text.length && !this.#looping; n += 1) this.#take(text.charCodeAt(n));
    return this.#looping;
  }

  #take(unit: number): void {
    const { periodMaxChars, repeats, repeatedChars } = this.#limits;
    const leaving = this.#length >= GRAM ? this.#at(GRAM) : 0;
    this.#hash = (Math.imul(this.#hash, BASE) + unit - Math.imul(LEAVING, leaving)) | 0;
    const holds = this.#period > 0 && this.#at(this.#period) === unit;
    this.#tail[this.#length & (this.#tail.length - 1)] = unit;
    this.#length += 1;
    const slot = (Math.imul(this.#hash, 0x9e3779b1) >>> 16) & (SLOTS - 1);
    if (holds) {
      this.#run += 1;
      this.#looping = this.#run >= Math.max(repeatedChars, repeats * this.#period);
    } else {
      const distance = this.#length - (this.#places[slot] ?? 0);
      this.#period = this.#length >= GRAM && distance < this.#length && distance <= periodMaxChars ? distance : 0;
      this.#run = 0;
    }
    if (this.#length >= GRAM) this.#places[slot] = this.#length;
  }

  /** The character so many places before the one that comes next. */
  #at(back: number): number {
    return this.#tail[(this.#length - back) & (this.#tail.length - 1)] ?? 0;
  }
}
