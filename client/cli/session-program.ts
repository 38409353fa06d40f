import { text } from 'node:stream/consumers';
import { type Command, InvalidArgumentError } from 'commander';
import type { Output } from './output.ts';
import { editInput, inputs, lockInput, send, unlockInput, withdraw } from './queue-commands.ts';
import { archive, fork, messages, rename, rewind, sessions } from './session-life-commands.ts';
import { UsageError } from './usage-error.ts';

const CONFIG = ['-c, --config <file>', 'the config file; pawl.config.ts here if there is one'] as const;
const JSON_OUT = ['--json', 'JSON, one value a line'] as const;

interface Flags {
  config?: string;
  json?: boolean;
}

type Done = (code: number) => void;

const SAYS = [
  ['send', 'prompt', 'queue a further prompt for a session'],
  ['steer', 'steer', 'tell the running turn something, at its next safe point'],
  ['send-now', 'send_now', 'tell the running turn something at once: what it streams or waits for is cut short'],
] as const;

/** Further inputs of a session: sent, listed, changed until a turn has them. */
export function addQueueCommands(program: Command, output: Output, done: Done): void {
  for (const [verb, mode, description] of SAYS) {
    command(program, verb, description)
      .argument('<session or job>')
      .argument('[text...]', 'what to say; read from standard input if left out, or -')
      .option('--id <id>', 'your own id of it: the same one again is the same input')
      .action(async (of: string, words: string[], { id, ...options }: Flags & { id?: string }) =>
        done(await send(of, { text: await textOf(words), mode, id }, options, output)),
      );
  }
  command(program, 'inputs', 'what was sent to a session, by whom, and what became of it')
    .argument('<session or job>')
    .option('--waiting', 'only those that no turn has heard yet')
    .action(async (of: string, options: Flags & { waiting?: boolean }) => done(await inputs(of, options, output)));
  command(program, 'edit-input', 'give an input that still waits another text')
    .argument('<input>')
    .argument('<text...>')
    .action(async (id: string, words: string[], options: Flags) =>
      done(await editInput(id, words.join(' '), options, output)),
    );
  command(program, 'withdraw', 'take back an input that still waits')
    .argument('<input>')
    .option('--why <text>', 'kept with it')
    .action(async (id: string, options: Flags & { why?: string }) => done(await withdraw(id, options, output)));
  command(program, 'lock-input', 'keep an input for 5 minutes while you edit it; turns pass it over')
    .argument('<input>')
    .action(async (id: string, options: Flags) => done(await lockInput(id, options, output)));
  command(program, 'unlock-input', 'let go of your lock on an input')
    .argument('<input>')
    .action(async (id: string, options: Flags) => done(await unlockInput(id, options, output)));
}

/** Sessions themselves: listed, read, forked, taken back, named, put away. */
export function addSessionLifeCommands(program: Command, output: Output, done: Done): void {
  command(program, 'sessions', 'sessions, newest first')
    .option('--archived', 'those in the archive instead')
    .action(async (options: Flags & { archived?: boolean }) => done(await sessions(options, output)));
  command(program, 'messages', 'the transcript of a session; `fork` and `rewind` name its messages')
    .argument('<session or job>')
    .option('-n, --limit <number>', 'how many of the newest; 50 if left out', toLimit)
    .option('--from <message>', 'the newest to show, if it is not the head')
    .action(async (of: string, options: Flags & { limit?: number; from?: string }) =>
      done(await messages(of, options, output)),
    );
  command(program, 'fork', 'open a session with the same past up to a message, in the same workspace')
    .argument('<session>')
    .option('--at <message>', 'as `pawl messages` lists it, or `start`; its newest message if left out')
    .option('--title <text>', 'its title; that of the other one if left out')
    .action(async (id: string, { at, title, ...options }: Flags & { at?: string; title?: string }) =>
      done(await fork(id, { at, title }, options, output)),
    );
  command(program, 'rewind', 'take a session back to a message, or forward again; the world stays as it is')
    .argument('<session>')
    .argument('<message>', 'as `pawl messages` lists it, or `start`')
    .option('--why <text>', 'kept with it')
    .action(async (id: string, to: string, { why, ...options }: Flags & { why?: string }) =>
      done(await rewind(id, { to, why }, options, output)),
    );
  command(program, 'rename', 'give a session another title')
    .argument('<session>')
    .argument('<title...>')
    .action(async (id: string, words: string[], options: Flags) =>
      done(await rename(id, words.join(' '), options, output)),
    );
  command(program, 'archive', 'put a session away: it takes nothing any more')
    .argument('<session>')
    .option('--why <text>', 'kept with it')
    .action(async (id: string, { why, ...options }: Flags & { why?: string }) =>
      done(await archive(id, { archived: true, why }, options, output)),
    );
  command(program, 'unarchive', 'take a session out of the archive')
    .argument('<session>')
    .action(async (id: string, options: Flags) => done(await archive(id, { archived: false }, options, output)));
}

function command(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .description(description)
    .option(...JSON_OUT)
    .option(...CONFIG);
}

/** A pipe is read as its writer goes: one that is slower than we are is not at its end. */
async function textOf(words: readonly string[]): Promise<string> {
  const isPiped = words.length === 0 || (words.length === 1 && words[0] === '-');
  if (!isPiped) return words.join(' ');
  if (process.stdin.isTTY) throw new UsageError('The input has no text: give it as words, or on standard input.');
  return (await text(process.stdin)).trimEnd();
}

const LIMIT_MAX = 200;

function toLimit(text: string): number {
  const limit = Number(text);
  if (!/^\d{1,3}$/.test(text) || limit < 1 || limit > LIMIT_MAX) {
    throw new InvalidArgumentError(`It is not a number from 1 to ${LIMIT_MAX}.`);
  }
  return limit;
}
