import { z } from 'zod';
import { answering, Refused, success } from './answer.ts';
import { defineTool, type ToolContext } from './define-tool.ts';
import { replaceFile } from './replace-file.ts';
import { isWellFormed } from './text.ts';
import { writesFile } from './path-locks.ts';
import { fileName, placeToWrite } from './workspace-path.ts';
import { hashIfThere, sha256 } from './workspace-file.ts';

const input = z.strictObject({
  path: z.string().min(1).describe('Path of the file, relative to the workspace folder. Missing folders are made.'),
  content: z.string().describe('The whole new content of the file.'),
});
type Args = z.output<typeof input>;

export const writeFile = defineTool<Args>({
  name: 'write_file',
  description:
    'Writes a whole text file in the workspace, new or in the place of an old one. To change a part, use edit_file.',
  input,
  effect: 'idempotent',
  locks: ({ path }, workspace) => writesFile(workspace, path),
  subject: ({ path }) => ({ kind: 'path', text: path }),
  within: 'workspace',
  prepare: notes,
  run: (args, context) =>
    answering(args.path, context, async () => {
      if (!isWellFormed(args.content)) {
        throw new Refused(
          'The content has half of a surrogate pair in it, which no file can hold. Write the whole character.',
          'bad_text',
        );
      }
      const place = await placeToWrite(context.workspace, args.path);
      const bytes = Buffer.from(args.content);
      await replaceFile(context.workspace, place, bytes, { key: context.idempotencyKey, signal: context.signal });
      return success(`Wrote ${place.shown} (${bytes.length} bytes).`, context.resultChars);
    }),
});

/** Hashes for the ledger; a fault here is no fault of the call: `run` will meet it again and say it. */
async function notes({ path, content }: Args, context: ToolContext) {
  const before = await hashIfThere(context.workspace, path, context.signal).catch(() => null);
  return { path: fileName(context.workspace, path), before, after: sha256(content) };
}
