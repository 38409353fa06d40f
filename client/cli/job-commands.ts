import { isAtRest } from '../job.ts';
import { agentLine } from './agent-line.ts';
import { costText } from './cost-text.ts';
import { eventLine } from './event-line.ts';
import { EXIT, exitCodeOf } from './exit-code.ts';
import { openJobLine, restLines } from './format.ts';
import type { Runs } from '../runs.ts';
import { waitingInputs } from './input-lines.ts';
import type { Output } from './output.ts';
import { sessionText, showText } from './show-text.ts';
import { handIn, TENANT, type Ticket, watch, whoami } from './ticket.ts';
import { UsageError } from './usage-error.ts';
import { whyText } from './why-text.ts';
import { withRuns } from './with-runs.ts';

interface Common {
  readonly config?: string | undefined;
  readonly json?: boolean | undefined;
}

export async function submit(
  ticket: Ticket,
  options: Common & { readonly follow: 'show' | 'wait' | null },
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs, interrupt) => {
    const { job, isNew } = await handIn(runs, ticket);
    if (options.json) output.json({ job, isNew });
    else output.line(isNew ? job : `${job}  (this key had brought it before)`);
    if (!options.follow) return EXIT.ok;
    const quiet = options.json || options.follow === 'wait' ? { ...output, write: () => {} } : output;
    const end = await watch(runs, job, quiet, interrupt.signal);
    if (!end) return EXIT.interrupted;
    if (options.json) output.json(end);
    else output.line(restLines(end).join('\n'));
    return exitCodeOf(end);
  });
}

export async function ps(options: Common, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const open = await runs.ps(TENANT);
    for (const each of open) {
      if (options.json) output.json(each);
      else output.line([openJobLine(each, Date.now()), ...each.agents.map((a) => `    ${agentLine(a)}`)].join('\n'));
    }
    if (open.length === 0 && !options.json) output.note('No job is open.');
    return EXIT.ok;
  });
}

export async function show(id: string, options: Common, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const shown = await runs.show(TENANT, id);
    if (!shown) return await showSession(runs, id, options, output);
    const waiting = await waitingInputs(runs, shown.job.session);
    if (options.json) output.json({ ...shown, waiting });
    else output.line(showText(shown, Date.now(), waiting));
    return isAtRest(shown.job.state) ? exitCodeOf(shown.job) : EXIT.ok;
  });
}

async function showSession(runs: Runs, id: string, options: Common, output: Output): Promise<number> {
  const found = await runs.session(TENANT, id);
  if (!found) throw new UsageError(`There is no job or session ${id}; \`pawl ps\` lists the open ones.`);
  const waiting = await waitingInputs(runs, found.id);
  if (options.json) output.json({ session: found, waiting });
  else output.line(sessionText(found, waiting, Date.now()));
  return EXIT.ok;
}

export async function why(id: string, options: Common, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const found = await runs.why(TENANT, id);
    if (!found) throw new UsageError((await isRecurring(runs, id)) ? recurringWords(id) : nothingOf(id));
    if (options.json) output.json(found);
    else output.line(whyText(found));
    const { end, goesOn } = found;
    return end && !goesOn ? exitCodeOf({ end, dropped: null }) : EXIT.ok;
  });
}

const isRecurring = async (runs: Runs, id: string) => (await runs.recurring(TENANT, id)) !== null;

function recurringWords(id: string): string {
  return `${id} is a recurring goal: ask about one of its rounds, which \`pawl goal show ${id}\` lists.`;
}

function nothingOf(id: string): string {
  return `There is no turn, job, session or goal ${id}; \`pawl ps\` and \`pawl goal list\` list what is open.`;
}

export async function cost(id: string, options: Common, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const report = await runs.cost(TENANT, id);
    if (!report) throw new UsageError(`There is no job or session ${id}; \`pawl ps\` lists the open ones.`);
    if (options.json) output.json({ id, ...report });
    else output.line(costText(report));
    return EXIT.ok;
  });
}

export async function events(
  job: string,
  options: Common & { readonly after?: number },
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs, interrupt) => {
    if (!(await runs.get(TENANT, job))) noSuchJob(job);
    const following = runs.events(TENANT, job, { after: options.after ?? 0, signal: interrupt.signal });
    for (;;) {
      const { done, value } = await following.next();
      if (done) {
        if (value && options.json) output.json({ type: 'end', ...value });
        return value ? exitCodeOf(value) : EXIT.interrupted;
      }
      if (options.json) output.json(value);
      const line = options.json ? null : eventLine(value);
      if (line !== null) output.line(line);
    }
  });
}

const ANSWERS = {
  took_request: 'It was asked to end.',
  already_ended: 'It had ended already.',
  withdrawn: 'The job had not begun; it is withdrawn.',
} as const;

export async function cancel(
  job: string,
  options: Common & { readonly why?: string },
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const answer = (await runs.cancel(TENANT, job, { by: whoami(), why: options.why })) ?? noSuchJob(job);
    if (options.json) output.json({ job, answer });
    else output.line(ANSWERS[answer]);
    return EXIT.ok;
  });
}

function noSuchJob(job: string): never {
  throw new UsageError(`There is no job ${job}; \`pawl ps\` lists the open ones.`);
}
