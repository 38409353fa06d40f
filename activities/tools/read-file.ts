import { z } from 'zod';
import { answering, Refused, success } from './answer.ts';
import { looksBinary } from './capture.ts';
import { defineTool, type ToolContext } from './define-tool.ts';
import { linesOf } from './lines.ts';

import { readsFile } from './path-locks.ts';
import { hashOf, type OpenFile, piecesOf, withFile } from './workspace-file.ts';

/** Kept free in a result for the line that says where to go on. */
const NOTE_CHARS = 200;
const SNIFF_BYTES = 8_192;

const input = z.strictObject({
  path: z.string().min(1).describe('Path of the file, relative to the workspace folder.'),
  offset: z.number().int().min(1).max(1_000_000_000).default(1).describe('First line to read, counted from 1.'),
  limit: z.number().int().min(1).max(100_000).default(2_000).describe('Most lines to read.'),
});
type Args = z.output<typeof input>;

export const readFile = defineTool<Args>({
  name: 'read_file',
  description:
    'Reads lines of a text file in the workspace, exactly as they are. A long file is read in parts, with offset and limit.',
  input,
  effect: 'none',
  quick: true,
  locks: ({ path }, workspace) => readsFile(workspace, path),
  subject: ({ path }) => ({ kind: 'path', text: path }),
  run: (args, context) =>
    answering(args.path, context, () =>
      withFile(context.workspace, args.path, async (file) => {
        const text = (await startsBinary(file)) ? await describe(file, context) : await part(file, args, context);
        return success(text, context.resultChars);
      }),
    ),
});

async function part(file: OpenFile, { offset, limit }: Args, context: ToolContext): Promise<string> {
  if (file.size === 0) return '(The file is empty.)';
  const room = Math.max(1, context.resultChars - NOTE_CHARS);
  const shown: string[] = [];
  let used = 0;
  let number = 0;
  for await (const line of linesOf(piecesOf(file.handle, context.signal), room)) {
    number++;
    if (number < offset) continue;
    const full = shown.length === limit || used + line.text.length + 1 > room;
    if (full && shown.length > 0) return `${shown.join('\n')}\n[More follows: go on with offset ${number}.]`;
    if (line.cut)
      return `${line.text}\n[Line ${number} is longer than this; the next line is at offset ${number + 1}.]`;
    shown.push(line.text);
    used += line.text.length + 1;
  }
  if (shown.length === 0) throw new Refused(`${file.place.shown}: the file has only ${number} lines.`, 'past_the_end');
  return shown.join('\n');
}

async function startsBinary(file: OpenFile): Promise<boolean> {
  const buffer = Buffer.alloc(SNIFF_BYTES);
  const { bytesRead } = await file.handle.read(buffer, 0, SNIFF_BYTES, 0);
  return looksBinary(buffer.subarray(0, bytesRead));
}

async function describe(file: OpenFile, { signal }: ToolContext): Promise<string> {
  const hash = await hashOf(file, signal);
  return `[${file.place.shown} is a binary file, not shown: ${file.size} bytes, sha256 ${hash}.]`;
}
