import { SetupError } from '../../worker/setup-error.ts';
import { CLOSED_WORDS } from '../faults.ts';
import type { InputAnswer, LockAnswer, NewPrompt } from '../inputs.ts';
import { refusedInputWords } from '../refused-words.ts';
import type { Runs } from '../runs.ts';
import { EXIT } from './exit-code.ts';
import { oneLine, printable } from './format.ts';
import { everyInput, inputLine, noSuchSession } from './input-lines.ts';
import type { Output } from './output.ts';
import { TENANT, whoami } from './ticket.ts';
import { UsageError } from './usage-error.ts';
import { withRuns } from './with-runs.ts';

interface Common {
  readonly config?: string | undefined;
  readonly json?: boolean | undefined;
}

export async function send(
  of: string,
  prompt: Omit<NewPrompt, 'by'>,
  options: Common,
  output: Output,
): Promise<number> {
  if (prompt.text.trim() === '') throw new UsageError('The input has no text: give it as words, or on standard input.');
  return await withRuns(options.config, async (runs) => {
    const sent = (await runs.send(TENANT, of, { ...prompt, by: whoami() })) ?? noSuchSession(of);
    switch (sent.kind) {
      case 'conflict':
        throw new UsageError(`The id ${prompt.id} was used for another input, ${sent.input}: take another id.`);
      case 'archived':
        throw new SetupError(`The session of ${of} is archived: \`pawl unarchive\` it first, or fork it.`);
      case 'agent_ended':
        throw new SetupError(CLOSED_WORDS.agent_ended);
      case 'full':
        throw new SetupError(`${sent.waiting} inputs wait in this session: send it again when fewer do.`);
      case 'accepted':
        if (options.json) output.json(sent);
        else output.line(sent.isNew ? sent.input : `${sent.input}  (this id had brought it before)`);
        return EXIT.ok;
    }
  });
}

export async function inputs(
  of: string,
  options: Common & { readonly waiting?: boolean },
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    let shown = 0;
    for await (const each of everyInput(runs, of, options.waiting === true)) {
      shown += 1;
      if (options.json) output.json(each);
      else output.line(inputLine(each, Date.now()));
    }
    if (shown === 0 && !options.json) output.note('It has no inputs.');
    return EXIT.ok;
  });
}

export async function editInput(input: string, text: string, options: Common, output: Output): Promise<number> {
  if (text.trim() === '') throw new UsageError('The input has no text; `pawl withdraw` takes it back.');
  const done = 'It has that text now.';
  return await change(input, options, output, done, (runs) => runs.editInput(TENANT, input, { text, by: whoami() }));
}

export async function withdraw(
  input: string,
  options: Common & { readonly why?: string },
  output: Output,
): Promise<number> {
  const { why } = options;
  return await change(input, options, output, 'It is withdrawn.', (runs) =>
    runs.withdrawInput(TENANT, input, { by: whoami(), why }),
  );
}

export async function unlockInput(input: string, options: Common, output: Output): Promise<number> {
  const done = 'It may be taken again.';
  return await change(input, options, output, done, (runs) => runs.unlockInput(TENANT, input, { by: whoami() }));
}

export async function lockInput(input: string, options: Common, output: Output): Promise<number> {
  return await change(input, options, output, 'It is yours', (runs) => runs.lockInput(TENANT, input, { by: whoami() }));
}

async function change(
  input: string,
  options: Common,
  output: Output,
  done: string,
  make: (runs: Runs) => Promise<InputAnswer | LockAnswer | null>,
): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const answer = await make(runs);
    if (!answer)
      throw new UsageError(`There is no input ${input}; \`pawl inputs <session>\` lists those of a session.`);
    const words = wordsOf(answer, done);
    if (options.json) output.json({ input, ...answer });
    else output.line(words);
    return EXIT.ok;
  });
}

function wordsOf(answer: InputAnswer | LockAnswer, done: string): string {
  switch (answer.kind) {
    case 'changed':
      return done;
    case 'locked_now':
      return `${done} until ${answer.until}: turns pass it over meanwhile.`;
    case 'before':
      return `It was withdrawn before${answer.by === null ? '' : ` by ${oneLine(answer.by, 40)}`}.`;
    default:
      throw new SetupError(printable(refusedInputWords(answer)));
  }
}
