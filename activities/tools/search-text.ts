import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { answering, failure, Refused, success } from './answer.ts';
import { show } from './capture.ts';
import { defineTool, type ToolResult } from './define-tool.ts';
import { type Finished, runProcess } from './run-process.ts';
import { readsTree } from './path-locks.ts';
import { placeToRead } from './workspace-path.ts';

const WORKER = fileURLToPath(new URL('./search-worker.js', import.meta.url));
const LIMITS = { timeMs: 60_000, mostMatches: 200, lineChars: 300, memoryMb: 256 } as const;

const input = z.strictObject({
  pattern: z.string().min(1).max(2_000).describe('What to look for in each line: a JavaScript regular expression.'),
  path: z.string().default('.').describe('File or folder to search, relative to the workspace folder.'),
  include: z
    .string()
    .max(500)
    .optional()
    .describe('Only files whose name fits this glob, such as *.ts or src/**/*.{ts,js}.'),
  literal: z.boolean().default(false).describe('Take the pattern as plain text.'),
  ignore_case: z.boolean().default(false),
});
type Args = z.output<typeof input>;

export const searchText = defineTool<Args>({
  name: 'search_text',
  description:
    'Searches the text files of the workspace line by line and returns the matching lines as path:line:text. .git, node_modules and symbolic links are left out.',
  input,
  effect: 'none',
  timeLimitMs: LIMITS.timeMs + 10_000,
  locks: ({ path }, workspace) => readsTree(workspace, path),
  subject: ({ path }) => ({ kind: 'tree', text: path }),
  run: (args, context) =>
    answering(args.path, context, async () => {
      const place = await placeToRead(context.workspace, args.path);
      const spec = { ...patternOf(args), include: args.include, root: place.path, base: context.workspace, ...LIMITS };
      const finished = await runProcess(
        {
          command: process.execPath,
          args: [`--max-old-space-size=${LIMITS.memoryMb}`, WORKER, JSON.stringify(spec)],
          timeLimitMs: LIMITS.timeMs,
          gentle: false,
        },
        context,
      );
      return report(finished, context.resultChars);
    }),
});

function patternOf({ pattern, literal, ignore_case }: Args): { pattern: string; flags: string } {
  const source = literal ? pattern.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') : pattern;
  const insensitive = ignore_case ? 'i' : '';
  // With the u flag first; patterns that are only legal without it, such as \- , are common too.
  const flags = [`u${insensitive}`, insensitive].find((candidate) => compiles(source, candidate));
  if (flags === undefined) {
    throw new Refused('The pattern is not a regular expression. Correct it, or set literal to true.', 'bad_pattern');
  }
  return { pattern: source, flags };
}

function compiles(source: string, flags: string): boolean {
  try {
    new RegExp(source, flags);
    return true;
  } catch {
    return false;
  }
}

function report({ exit, stopped, captured }: Finished, chars: number): ToolResult {
  if (stopped === 'timeout') {
    return failure(
      `The search took longer than ${LIMITS.timeMs / 1_000} s. Search a smaller folder, or use a simpler pattern.`,
      'timeout',
      chars,
    );
  }
  if (stopped === 'aborted') {
    return { ...failure('The search was stopped by a cancel.', 'aborted', chars), aborted: 'without_effect' };
  }
  if (stopped === 'output' || exit.code !== 0) {
    const note = exit.code === null ? `signal ${exit.signal}` : `exit ${exit.code}`;
    return failure('The search failed. Search a smaller folder, or use the shell.', note, chars);
  }
  return success(show(captured, chars).text.trimEnd(), chars);
}
