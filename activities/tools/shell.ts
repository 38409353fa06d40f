import { existsSync } from 'node:fs';
import { z } from 'zod';
import { answering, Refused } from './answer.ts';
import { show } from './capture.ts';
import { defineTool, type ToolResult } from './define-tool.ts';
import { type Finished, runProcess } from './run-process.ts';
import { isWellFormed } from './text.ts';

const LONGEST_S = 600;
/** Kept free in a result for the line that says how the command ended. */
const STATUS_CHARS = 200;
/** The system's limit for one argument is 128 KiB, and the supervisor gets the command inside JSON. */
const COMMAND_BYTES = 100_000;

const input = z.strictObject({
  command: z.string().min(1).describe('The command line, for bash.'),
  timeout_seconds: z
    .number()
    .int()
    .min(1)
    .max(LONGEST_S)
    .default(120)
    .describe('The command is ended after this many seconds.'),
});

export const shell = defineTool<z.output<typeof input>>({
  name: 'shell',
  description:
    'Runs a command with bash in the workspace folder and returns its output and exit code. ' +
    'Standard input is closed and nothing is asked. The call ends with the command: what it leaves running is ended too. ' +
    'Long output is shown as its beginning and end.',
  input,
  effect: 'once',
  onUnknown: 'tell',
  subject: ({ command }) => ({ kind: 'command', text: command }),
  timeLimitMs: (LONGEST_S + 20) * 1_000,
  run: (args, context) =>
    answering('shell', context, async () => {
      const finished = await runProcess(
        { ...bash(args.command), timeLimitMs: args.timeout_seconds * 1_000, gentle: true },
        context,
      );
      return report(finished, args.timeout_seconds, context.resultChars);
    }),
});

/** A command line as a process: one pipe for both of its streams. */
export function bash(command: string): { command: string; args: string[] } {
  if (command.includes('\0'))
    throw new Refused('The command has a NUL character in it; no command can have one.', 'bad_command');
  if (!isWellFormed(command))
    throw new Refused('The command has half of a surrogate pair in it. Write the whole character.', 'bad_command');
  if (Buffer.byteLength(JSON.stringify(command)) > COMMAND_BYTES) {
    throw new Refused(
      `The command is longer than ${COMMAND_BYTES} bytes. Write it to a file and run that.`,
      'bad_command',
    );
  }
  const bin = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh';
  // One pipe for both streams, so that errors stand where they happened.
  return { command: bin, args: ['-c', 'exec "$0" -c "$1" 2>&1', bin, command] };
}

function report(finished: Finished, limitSeconds: number, chars: number): ToolResult {
  const shown = show(finished.captured, chars - STATUS_CHARS);
  const end = howItEnded(finished, limitSeconds);
  const body = shown.text || (end === null ? '(no output)' : '');
  const output = shown.output === undefined ? {} : { output: shown.output };
  if (end === null) return { isError: false, text: body, note: 'exit 0', ...output };
  const gap = body === '' || body.endsWith('\n') ? '' : '\n';
  const aborted = finished.stopped === 'aborted' ? { aborted: 'in_the_middle' as const } : {};
  return { isError: true, text: `${body}${gap}[${end.text}]`, note: end.note, ...output, ...aborted };
}

function howItEnded({ exit, stopped }: Finished, limitSeconds: number): { text: string; note: string } | null {
  switch (stopped) {
    case 'timeout':
      return {
        text: `Ended after its limit of ${limitSeconds} s. What it did until then stays done.`,
        note: 'timeout',
      };
    case 'aborted':
      return { text: 'Stopped by a cancel while it ran. What it did until then stays done.', note: 'aborted' };
    case 'output':
      return {
        text: 'Ended because it wrote too much. Send its output to a file, or filter it.',
        note: 'output limit',
      };
    case null:
      if (exit.code === 0) return null;
      if (exit.code !== null) return { text: `exit code ${exit.code}`, note: `exit ${exit.code}` };
      return { text: `ended by ${exit.signal ?? 'a signal'}`, note: `signal ${exit.signal ?? 'unknown'}` };
  }
}
