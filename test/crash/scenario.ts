import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type ChatRequest,
  callTools,
  countToolResults,
  type Hold,
  paced,
  type Reply,
  say,
} from '../../testing/index.ts';

/** What the model does, by the number of tool results it has seen. Each edit would show if it happened twice. */
const STEPS: readonly Reply[] = [
  callTools([{ name: 'read_file', arguments: { path: 'list.txt' } }], { text: 'I look at the list first of all.' }),
  append('first'),
  append('second'),
  callTools([{ name: 'write_file', arguments: { path: 'made/new.txt', content: 'written\n' } }]),
  callTools([
    { name: 'shell', arguments: { command: 'echo line >> log.txt; while [ -e hold ]; do sleep 0.05; done' } },
  ]),
  callTools([{ name: 'list_files', arguments: {} }], { text: 'Let me see what is there now, before I answer.' }),
  // Slow enough that some of it is shown before it is kept.
  paced(say('Everything is done as it was asked, each edit once, and nothing more.'), { betweenChunksMs: 15 }),
];

function append(line: string): Reply {
  const edit = { path: 'list.txt', old_string: 'END\n', new_string: `${line}\nEND\n` };
  return callTools([{ name: 'edit_file', arguments: edit }], { text: 'Now one line more.' });
}

/** Samples of the whole turn, and the calls in it. */
export const SAMPLES = STEPS.length;
export const CALLS = ['read_file', 'edit_file', 'edit_file', 'write_file', 'shell', 'list_files'] as const;
export const SHELL_ORDER = 4;

/** Result texts where nothing was interrupted; the last call's lists whatever is there. */
export const RESULTS = [
  /^begin\nEND$/,
  /^Edited list\.txt: 1 replacement\.$/,
  /^Edited list\.txt: 1 replacement\.$/,
  /^Wrote made\/new\.txt \(8 bytes\)\.$/,
  /^\(no output\)$/,
  /list\.txt/,
] as const;

export const UNKNOWN = /^Interrupted while it ran: whether it took effect is not known\./;

/** The provider's answer; at `holdAt` the first request stops in the middle of its stream, for good. */
export function replyTo(request: ChatRequest, held: { readonly step: number; readonly hold: Hold } | null): Reply {
  const step = countToolResults(request);
  const reply = STEPS[step];
  if (!reply) throw new Error(`there is no step ${step}`);
  return held?.step === step ? paced(reply, { hold: held.hold, holdAt: 3 }) : reply;
}

export function prepareFiles(workspace: string, holdShell: boolean): void {
  mkdirSync(workspace, { recursive: true });
  writeFileSync(join(workspace, 'list.txt'), 'begin\nEND\n');
  if (holdShell) writeFileSync(join(workspace, 'hold'), '');
}

/** Every file under the workspace with its content. */
export function filesOf(folder: string, prefix = ''): Record<string, string> {
  const entries = readdirSync(folder, { withFileTypes: true });
  return Object.assign(
    {},
    ...entries.map((entry): Record<string, string> => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return filesOf(path, `${prefix}${entry.name}/`);
      return { [`${prefix}${entry.name}`]: readFileSync(path, 'utf8') };
    }),
  ) as Record<string, string>;
}

/** The held shell command has written its line. */
export function shellRuns(workspace: string): boolean {
  return existsSync(join(workspace, 'log.txt'));
}
