import { randomInt } from 'node:crypto';

const LETTERS = 'GHJKMNPQRSTUVWXYZ';
const PIECE = 6;

/** Sixteen letters that neither a hash, an id nor a word of ours has in a row. */
export function newMarker(): string {
  return Array.from({ length: 16 }, () => LETTERS[randomInt(LETTERS.length)]).join('');
}

/** Pieces of the marker in these bytes, plain, as base64 or as hex. */
export function piecesIn(bytes: Uint8Array, marker: string): string[] {
  const plain = Array.from({ length: marker.length - PIECE + 1 }, (_, n) => marker.slice(n, n + PIECE));
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.from('-'.repeat(shift) + marker)
      .toString('base64')
      .slice(4, 4 + 12),
  );
  const haystack = Buffer.from(bytes);
  return [...plain, ...base64, Buffer.from(marker).toString('hex')].filter((piece) => haystack.includes(piece));
}
