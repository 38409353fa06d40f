import { SetupError } from '../../worker/setup-error.ts';
import { CLOSED_WORDS } from '../faults.ts';
import type { ShownMessage } from '../messages.ts';
import { busyWords, NO_MESSAGE } from '../refused-words.ts';
import { EXIT } from './exit-code.ts';
import { oneLine } from './format.ts';
import type { Output } from './output.ts';
import { sessionLine } from './session-line.ts';
import { TENANT, whoami } from './ticket.ts';
import { UsageError } from './usage-error.ts';
import { withRuns } from './with-runs.ts';

interface Common {
  readonly config?: string | undefined;
  readonly json?: boolean | undefined;
}

export async function sessions(options: Common & { readonly archived?: boolean }, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const { sessions: found, next } = await runs.sessions(TENANT, {
      limit: 200,
      state: options.archived ? 'archived' : 'open',
    });
    for (const each of found) {
      if (options.json) output.json(each);
      else output.line(sessionLine(each, Date.now()));
    }
    if (found.length === 0 && !options.json) output.note('There is none.');
    if (next !== null && !options.json) output.note('There are older ones: the API lists them all.');
    return EXIT.ok;
  });
}

export async function messages(
  of: string,
  options: Common & { readonly limit?: number; readonly from?: string },
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const { from, limit } = options;
    const page = (await runs.messages(TENANT, of, { from, limit })) ?? noSuchSession(of);
    // As a conversation is read: the newest at the end.
    for (const each of [...page.messages].reverse()) {
      if (options.json) output.json(each);
      else output.line(messageLine(each));
    }
    if (page.next !== null && !options.json) output.note(`There are older ones: --from ${page.next.slice(0, 12)}.`);
    return EXIT.ok;
  });
}

export function messageLine({ hash, depth, kind, text, tools }: ShownMessage): string {
  const calls = tools.length === 0 ? '' : ` [${tools.map((tool) => oneLine(tool, 40)).join(', ')}]`;
  return `${String(depth).padStart(5)}  ${hash.slice(0, 12)}  ${kind}${calls}  ${oneLine(text, 80)}`.trimEnd();
}

export async function fork(
  session: string,
  wish: { readonly at?: string | undefined; readonly title?: string | undefined },
  options: Common,
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const forked = (await runs.fork(TENANT, session, { ...wish, by: whoami() })) ?? noSuchSession(session);
    if (forked.kind !== 'forked') throw new UsageError(NO_MESSAGE);
    if (options.json) output.json(forked);
    else output.line(`${forked.session}${toldWords(forked.effects)}`);
    return EXIT.ok;
  });
}

export async function rewind(
  session: string,
  wish: { readonly to: string; readonly why?: string | undefined },
  options: Common,
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const rewound = (await runs.rewind(TENANT, session, { ...wish, by: whoami() })) ?? noSuchSession(session);
    if (rewound.kind === 'unknown_message') throw new UsageError(NO_MESSAGE);
    if (rewound.kind === 'busy') throw new SetupError(busyWords(rewound));
    if (options.json) output.json(rewound);
    else output.line(`Its head is ${rewound.head.slice(0, 12)} now.${toldWords(rewound.effects)}`);
    return EXIT.ok;
  });
}

function toldWords(effects: number): string {
  if (effects === 0) return '';
  const calls = effects === 1 ? '1 call' : `${effects} calls`;
  return `  (the world was not rewound: the agent is told of ${calls} behind that point)`;
}

export async function rename(session: string, title: string, options: Common, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    if (!(await runs.rename(TENANT, session, { title, by: whoami() }))) noSuchSession(session);
    if (options.json) output.json({ session, title });
    else output.line('It has that title now.');
    return EXIT.ok;
  });
}

export async function archive(
  session: string,
  wish: { readonly archived: boolean; readonly why?: string | undefined },
  options: Common,
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const answer = (await runs.archive(TENANT, session, { ...wish, by: whoami() })) ?? noSuchSession(session);
    if (answer.kind === 'agent_ended') throw new SetupError(CLOSED_WORDS.agent_ended);
    if (answer.kind !== 'done') throw new SetupError(busyWords(answer));
    if (options.json) output.json({ session, archived: wish.archived, changed: answer.changed });
    else output.line(`${answer.changed ? '' : 'It was so already: '}${wish.archived ? ARCHIVED : OPEN}`);
    return EXIT.ok;
  });
}

const ARCHIVED = 'The session is archived; it takes nothing until `pawl unarchive`.';
const OPEN = 'The session is open; it takes inputs.';

function noSuchSession(of: string): never {
  throw new UsageError(`There is no session ${of}; \`pawl sessions\` lists them.`);
}
