import { z } from 'zod';
import { answering, Refused, success } from './answer.ts';
import { defineTool, type Reconciled, type ToolContext, type ToolResult } from './define-tool.ts';
import { replaceFile } from './replace-file.ts';
import { isWellFormed } from './text.ts';
import { writesFile } from './path-locks.ts';
import { placeToWrite } from './workspace-path.ts';
import { hashIfThere, readWhole, sha256, withFile } from './workspace-file.ts';

const MOST_BYTES = 8 * 1024 * 1024;

const input = z.strictObject({
  path: z.string().min(1).describe('Path of the file, relative to the workspace folder.'),
  old_string: z.string().min(1).describe('The exact text to replace, with enough around it to occur only once.'),
  new_string: z.string().describe('The text to put there.'),
  replace_all: z.boolean().default(false).describe('Replace every occurrence.'),
});
type Args = z.output<typeof input>;

/** What the ledger keeps with the mark `started`: enough to tell later whether the edit happened. */
const Notes = z.object({ path: z.string(), before: z.string(), after: z.string(), replacements: z.number() });
type Notes = z.output<typeof Notes>;

export const editFile = defineTool<Args>({
  name: 'edit_file',
  description:
    'Replaces an exact piece of text in a file of the workspace. The old text must occur exactly once, unless replace_all is set.',
  input,
  effect: 'once',
  locks: ({ path }, workspace) => writesFile(workspace, path),
  subject: ({ path }) => ({ kind: 'path', text: path }),
  within: 'workspace',
  // What is wrong is said by `run`, which meets it again.
  prepare: (args, context) =>
    plan(args, context)
      .then(({ notes }) => notes)
      .catch(() => null),
  run: (args, context) => answering(args.path, context, () => edit(args, context)),
  reconcile,
});

async function edit(args: Args, context: ToolContext): Promise<ToolResult> {
  const place = await placeToWrite(context.workspace, args.path);
  const noted = notesOf(context);
  const current = noted && (await hashIfThere(context.workspace, args.path, context.signal));
  if (noted && current === noted.after) return done(noted, context);
  if (noted && current !== noted.before) throw changed(args.path);
  const { notes, bytes } = await plan(args, context);
  if (noted && notes.before !== noted.before) throw changed(args.path);
  await replaceFile(context.workspace, place, bytes, { key: context.idempotencyKey, signal: context.signal });
  return done(notes, context);
}

/** Reads the file and works out what it would become; changes nothing. */
async function plan(args: Args, context: ToolContext): Promise<{ notes: Notes; bytes: Buffer }> {
  if (args.old_string === args.new_string)
    throw new Refused('old_string and new_string are the same: nothing to do.', 'no_change');
  if (!isWellFormed(args.new_string)) {
    throw new Refused(
      'new_string has half of a surrogate pair in it, which no file can hold. Write the whole character.',
      'bad_text',
    );
  }
  return withFile(context.workspace, args.path, async (file) => {
    const old = await readWhole(file, MOST_BYTES, context.signal);
    const parts = textOf(old, args.path).split(args.old_string);
    const replacements = parts.length - 1;
    checkMatches(args, parts);
    const bytes = Buffer.from(parts.join(args.new_string));
    return { notes: { path: file.place.shown, before: sha256(old), after: sha256(bytes), replacements }, bytes };
  });
}

function checkMatches({ path, old_string, replace_all }: Args, parts: readonly string[]): void {
  if (parts.length === 1) {
    const endings =
      old_string.includes('\n') && parts[0]?.includes('\r\n') ? ' The file has CRLF line ends (\\r\\n).' : '';
    throw new Refused(
      `${path}: old_string does not occur in the file.${endings} Read the file again and copy the text exactly, spaces included.`,
      'no_match',
    );
  }
  if (replace_all) return;
  const text = parts.join(old_string);
  if (text.indexOf(old_string) === text.lastIndexOf(old_string)) return;
  throw new Refused(
    `${path}: old_string occurs more than once. Add lines around it so that it occurs once, or set replace_all.`,
    'many_matches',
  );
}

/** Asks the file itself whether the edit happened. */
async function reconcile(args: Args, context: ToolContext): Promise<Reconciled> {
  const noted = notesOf(context);
  // Without notes the edit was not possible when it was prepared, but the file may have changed since.
  if (noted === null) return { kind: 'unknown' };
  try {
    const current = await hashIfThere(context.workspace, args.path, context.signal);
    if (current === noted.after) return { kind: 'done', result: done(noted, context) };
    return { kind: current === noted.before ? 'absent' : 'unknown' };
  } catch {
    return { kind: 'unknown' };
  }
}

function notesOf(context: ToolContext): Notes | null {
  return Notes.safeParse(context.details).data ?? null;
}

function done({ path, replacements }: Notes, context: ToolContext): ToolResult {
  return success(
    `Edited ${path}: ${replacements} ${replacements === 1 ? 'replacement' : 'replacements'}.`,
    context.resultChars,
  );
}

function changed(path: string): Refused {
  return new Refused(
    `${path}: the file was changed by somebody else just now. Read it again before you edit it.`,
    'changed',
  );
}

function textOf(bytes: Buffer, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Refused(`${path}: this file is not UTF-8 text. Change it with the shell.`, 'not_text');
  }
}
