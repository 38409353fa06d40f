import type { ToolContext, ToolResult } from './define-tool.ts';
import { fitText } from './text.ts';

/** A fault that the model can do something about: its message is what the model is told. */
export class Refused extends Error {
  /** Error class for the event table: a fixed word, never content. */
  readonly note: string;

  constructor(message: string, note: string) {
    super(message);
    this.name = 'Refused';
    this.note = note;
  }
}

export function success(text: string, chars: number): ToolResult {
  return { isError: false, text: fitText(text, chars) };
}

export function failure(text: string, note: string, chars: number): ToolResult {
  return { isError: true, text: fitText(text, chars), note };
}

/** Runs a tool's body; whatever it throws becomes the result of this call. */
export async function answering(
  subject: string,
  context: ToolContext,
  act: () => Promise<ToolResult>,
): Promise<ToolResult> {
  try {
    return await act();
  } catch (error) {
    const { signal, resultChars } = context;
    if (signal.aborted && error === signal.reason) {
      const text = 'The call was stopped before it changed anything.';
      return { ...failure(text, 'aborted', resultChars), aborted: 'without_effect' };
    }
    const refused = asRefused(error, subject);
    return failure(refused.message, refused.note, resultChars);
  }
}

/** What an error means to the model. `subject` is the name it used itself, so no path of ours is shown. */
function asRefused(error: unknown, subject: string): Refused {
  if (error instanceof Refused) return error;
  const code = errorCode(error);
  const meaning = code === null ? undefined : MEANINGS[code];
  if (meaning !== undefined) return new Refused(`${subject}: ${meaning}`, code ?? 'error');
  return new Refused(`${subject}: this failed (${code ?? 'unexpected error'}).`, code ?? 'error');
}

export function errorCode(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}

const MEANINGS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder. Use list_files to see what is there.',
  ENOTDIR: 'a part of this path is a file, not a folder. Use list_files to see what is there.',
  EISDIR: 'this is a folder, not a file.',
  EACCES: 'permission denied. The tools may not access it.',
  EPERM: 'the system does not permit this.',
  EROFS: 'it is on a read-only file system.',
  ENOSPC: 'the disk is full; the file was left as it was.',
  EDQUOT: 'the disk quota is used up; the file was left as it was.',
  ELOOP: 'this is a symbolic link, or a loop of them; name the real file.',
  ENAMETOOLONG: 'the name is too long for the file system.',
  EFBIG: 'the file would be too large.',
  EMFILE: 'too many files are open on this machine; try again.',
  EAGAIN: 'the machine has no process or memory to spare; try again.',
};
