import { isUtf8 } from 'node:buffer';
import { createHash, type Hash } from 'node:crypto';
import { stripVTControlCharacters } from 'node:util';
import { storable } from '../store/hash.ts';
import { firstChars, lastChars } from './text.ts';

/** Bytes of an output that are kept for its blob; what comes after is only counted and hashed. */
const KEEP_BYTES = 8 * 1024 * 1024;
/** A command that writes more than this is stopped: nobody will read it, and reading it costs the worker. */
export const STOP_BYTES = 256 * 1024 * 1024;
/** UTF-8 needs at most 3 bytes for each UTF-16 unit. */
const BYTES_PER_CHAR = 3;
const FIRST_BYTES = 65_536;

export interface Captured {
  readonly size: number;
  readonly sha256: string;
  /** The first bytes, up to the bound. */
  readonly kept: Buffer;
  /** The last bytes, as many as a result may need. */
  readonly tail: Buffer;
}

/** Takes any amount of bytes in bounded memory: a growing head, a ring for the tail, a running hash. */
export class Capture {
  #size = 0;
  #head = Buffer.alloc(0);
  #headLength = 0;
  readonly #ring: Buffer;
  readonly #keepBytes: number;
  readonly #hash: Hash = createHash('sha256');

  constructor(chars: number, keepBytes: number = KEEP_BYTES) {
    this.#ring = Buffer.alloc(Math.max(1, chars) * BYTES_PER_CHAR);
    this.#keepBytes = Math.max(keepBytes, this.#ring.length);
  }

  get size(): number {
    return this.#size;
  }

  write(chunk: Buffer): void {
    this.#hash.update(chunk);
    this.#keepHead(chunk.subarray(0, this.#keepBytes - this.#headLength));
    this.#keepTail(chunk);
    this.#size += chunk.length;
  }

  finish(): Captured {
    const kept = this.#head.subarray(0, this.#headLength);
    return { size: this.#size, sha256: this.#hash.digest('hex'), kept, tail: this.#unrolled() };
  }

  #keepHead(chunk: Buffer): void {
    const needed = this.#headLength + chunk.length;
    if (needed > this.#head.length) {
      // Copied, never referenced: many tiny chunks would cost far more than their bytes.
      const grown = Buffer.alloc(Math.min(this.#keepBytes, Math.max(needed, this.#head.length * 2, FIRST_BYTES)));
      this.#head.copy(grown, 0, 0, this.#headLength);
      this.#head = grown;
    }
    chunk.copy(this.#head, this.#headLength);
    this.#headLength = needed;
  }

  #keepTail(chunk: Buffer): void {
    const ring = this.#ring;
    const part = chunk.subarray(Math.max(0, chunk.length - ring.length));
    const at = (this.#size + chunk.length - part.length) % ring.length;
    const copied = part.copy(ring, at);
    part.copy(ring, 0, copied);
  }

  #unrolled(): Buffer {
    const ring = this.#ring;
    if (this.#size <= ring.length) return ring.subarray(0, this.#size);
    const at = this.#size % ring.length;
    return Buffer.concat([ring.subarray(at), ring.subarray(0, at)]);
  }
}

/** What is put into the result of a captured output: at most `chars` characters, storable whatever the bytes. */
export function show(captured: Captured, chars: number): { readonly text: string; readonly output?: Buffer } {
  const { size, kept } = captured;
  if (size === 0) return { text: '' };
  if (looksBinary(kept) || looksBinary(captured.tail, true)) return { text: describe(captured), output: kept };
  const whole = size <= kept.length ? decode(kept, false) : null;
  if (whole === null || whole.length > chars) return { text: headAndTail(captured, chars), output: kept };
  const text = clean(whole);
  if (!isUtf8(kept)) return { text: withNote(text, captured, chars), output: kept };
  return text === whole ? { text } : { text, output: kept };
}

/** NUL anywhere, or one byte in ten that is not UTF-8. `cut`: the first bytes may be the rest of a character. */
export function looksBinary(bytes: Buffer, cut = false): boolean {
  const sample = bytes.subarray(0, FIRST_BYTES);
  if (bytes.includes(0)) return true;
  if (isUtf8(sample)) return false;
  const bad = decode(cut ? afterCutCharacter(sample) : sample, true).split('\ufffd').length - 1;
  return bad > 8 && bad * 10 > sample.length;
}

/** UTF-8 to text; bytes that fit nothing become U+FFFD. `cut`: a character that the end cuts is left out. */
function decode(bytes: Buffer, cut: boolean): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: cut });
}

function headAndTail(captured: Captured, chars: number): string {
  const room = Math.max(0, chars - 300);
  const head = firstChars(decode(captured.kept.subarray(0, room * BYTES_PER_CHAR), true), Math.ceil(room / 2));
  const tail = lastChars(decode(afterCutCharacter(captured.tail), false), Math.floor(room / 2));
  const left = captured.size - Buffer.byteLength(head) - Buffer.byteLength(tail);
  const note = `[... about ${Math.max(0, left)} bytes left out here. ${identify(captured)} ...]`;
  return firstChars(`${clean(head)}\n${note}\n${clean(tail)}`, chars);
}

function withNote(text: string, captured: Captured, chars: number): string {
  const note = `\n[Some bytes were not UTF-8 text and are shown as \ufffd. ${identify(captured)}]`;
  return `${firstChars(text, chars - note.length)}${note}`;
}

function describe(captured: Captured): string {
  return `[Binary output, not shown. ${identify(captured)} To look at it, use a command that prints text, such as xxd or strings.]`;
}

function identify({ size, sha256, kept }: Captured): string {
  const part = size > kept.length ? ` Only the first ${kept.length} bytes were kept.` : '';
  return `The whole output is ${size} bytes, sha256 ${sha256}.${part}`;
}

function clean(text: string): string {
  return storable(stripVTControlCharacters(text));
}

function afterCutCharacter(bytes: Buffer): Buffer {
  let start = 0;
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}
