import { z } from 'zod';
import { answering, Refused, success } from './answer.ts';
import { looksBinary } from './capture.ts';
import { defineTool } from './define-tool.ts';

/** Kept free in a result for the line that says where to go on. */
const NOTE_CHARS = 200;
/** UTF-8 needs at most 4 bytes for a character. */
const MOST_CHAR_BYTES = 4;

const input = z.strictObject({
  id: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'an id is 64 hexadecimal digits')
    .describe('Id of the kept output, as the shortened result names it.'),
  offset: z.number().int().min(0).default(0).describe('Byte to start at.'),
});

export const readOutput = defineTool<z.output<typeof input>>({
  name: 'read_output',
  description: 'Reads on in the output of an earlier call whose result was shortened.',
  input,
  effect: 'none',
  quick: true,
  run: ({ id, offset }, context) =>
    answering('read_output', context, async () => {
      const kept = (await context.readBlob?.(id)) ?? null;
      if (kept === null)
        throw new Refused('No output is kept under this id. Copy the id from the result.', 'no_output');
      if (offset >= kept.length) throw new Refused(`The kept output has only ${kept.length} bytes.`, 'past_the_end');
      if (looksBinary(kept)) throw new Refused(`The kept output is binary: ${kept.length} bytes.`, 'binary');
      // A byte makes at most one character, so as many bytes always fit.
      const from = borderBefore(kept, offset);
      const next = borderBefore(kept, from + context.resultChars - NOTE_CHARS);
      const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(kept.subarray(from, next));
      const more = next < kept.length ? `\n[More follows: go on with offset ${next} of ${kept.length}.]` : '';
      return success(`${text}${more}`, context.resultChars);
    }),
});

/** The beginning of the character that a byte belongs to. */
function borderBefore(bytes: Buffer, offset: number): number {
  if (offset >= bytes.length) return bytes.length;
  for (let at = offset; at > Math.max(0, offset - MOST_CHAR_BYTES); at--) {
    if (((bytes[at] ?? 0) & 0xc0) !== 0x80) return at;
  }
  return offset;
}
