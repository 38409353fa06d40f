import type { Dirent } from 'node:fs';
import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { answering, Refused, success } from './answer.ts';
import { defineTool } from './define-tool.ts';
import { readsTree } from './path-locks.ts';
import { placeToRead } from './workspace-path.ts';

const MOST_ENTRIES = 1_000;
const MOST_IN_ONE_FOLDER = 5_000;
/** Listed, but not entered: what is in there is seldom meant. */
const CLOSED = new Set(['.git', 'node_modules']);

const input = z.strictObject({
  path: z.string().default('.').describe('The folder, relative to the workspace folder.'),
  depth: z.number().int().min(1).max(10).default(1).describe('How many levels of folders to list.'),
});

export const listFiles = defineTool<z.output<typeof input>>({
  name: 'list_files',
  description:
    'Lists a folder of the workspace, sorted by name. Folders end with /, symbolic links with @ and are not entered; nor are .git and node_modules.',
  input,
  effect: 'none',
  quick: true,
  locks: ({ path }, workspace) => readsTree(workspace, path),
  subject: ({ path }) => ({ kind: 'path', text: path }),
  run: ({ path, depth }, context) =>
    answering(path, context, async () => {
      const place = await placeToRead(context.workspace, path);
      if (!(await stat(place.path)).isDirectory()) {
        throw new Refused(`${path}: this is a file. Use read_file to read it.`, 'ENOTDIR');
      }
      const listing: Listing = { lines: [], left: MOST_ENTRIES, complete: true, signal: context.signal };
      await list(place.path, '', depth, listing);
      return success(written(listing, context.resultChars), context.resultChars);
    }),
});

interface Listing {
  readonly lines: string[];
  left: number;
  complete: boolean;
  readonly signal: AbortSignal;
}

async function list(folder: string, prefix: string, depth: number, listing: Listing): Promise<void> {
  for (const entry of await entriesOf(folder, listing)) {
    if (listing.left === 0) {
      listing.complete = false;
      return;
    }
    listing.left--;
    const name = `${prefix}${entry.name}`;
    listing.lines.push(`${oneLine(name)}${mark(entry)}`);
    if (!entry.isDirectory() || depth === 1 || CLOSED.has(entry.name)) continue;
    // A folder that can't be entered is still listed; the others go on.
    await list(join(folder, entry.name), `${name}/`, depth - 1, listing).catch((error) => {
      listing.signal.throwIfAborted();
      listing.lines.push(`${oneLine(name)}/ (can't be read: ${String(error?.code ?? 'error')})`);
    });
  }
}

async function entriesOf(folder: string, listing: Listing): Promise<Dirent[]> {
  const entries: Dirent[] = [];
  for await (const entry of await opendir(folder)) {
    listing.signal.throwIfAborted();
    if (entries.length === MOST_IN_ONE_FOLDER) {
      listing.complete = false;
      break;
    }
    entries.push(entry);
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** As many whole lines as fit. */
function written({ lines, complete }: Listing, chars: number): string {
  if (lines.length === 0) return '(The folder is empty.)';
  const note = '[There is more. List a folder further down, or use search_text.]';
  let room = chars - note.length - 1;
  const fit = lines.findIndex((line) => {
    room -= line.length + 1;
    return room < 0;
  });
  if (fit === -1 && complete) return lines.join('\n');
  return [...lines.slice(0, fit === -1 ? lines.length : fit), note].join('\n');
}

/** A name may hold any character but / and NUL, line breaks too. */
function oneLine(name: string): string {
  return /\p{Cc}/u.test(name) ? JSON.stringify(name) : name;
}

function mark(entry: Dirent): string {
  if (entry.isDirectory()) return '/';
  return entry.isSymbolicLink() ? '@' : '';
}
