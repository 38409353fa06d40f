import { Argument, Command, InvalidArgumentError } from 'commander';
import type { OutcomeAnswer } from '../../activities/store/schema.ts';
import { approvals, decide, report } from './approval-commands.ts';
import { cancel, cost, events, ps, show, submit, why } from './job-commands.ts';
import { addGoalCommands, goalOfTicket, type WishFlags, withWish } from './goal-program.ts';
import { readSchema } from './read-schema.ts';
import type { Output } from './output.ts';
import { migrate, serve, work } from './serve.ts';
import { plan } from './session-commands.ts';
import { addQueueCommands, addSessionLifeCommands } from './session-program.ts';
import { up } from './up.ts';

/** The command line as commander wants it; `done` gets the exit code of the command that ran. */
export function buildProgram(output: Output, done: (code: number) => void): Command {
  const program = new Command('pawl').description('Runs LLM agents durably.').exitOverride().showHelpAfterError(false);
  addUp(program, output, done);
  addJobCommands(program, output, done);
  addApprovalCommands(program, output, done);
  addOutcomeCommand(program, output, done);
  addSessionCommands(program, output, done);
  addQueueCommands(program, output, done);
  addSessionLifeCommands(program, output, done);
  addGoalCommands(program, output, done);
  addReport(program, output, done);
  addServers(program, output, done);
  return program;
}

const CONFIG = ['-c, --config <file>', 'the config file; pawl.config.ts here if there is one'] as const;
const JSON_OUT = ['--json', 'JSON, one value a line'] as const;

function addUp(program: Command, output: Output, done: (code: number) => void): void {
  program
    .command('up')
    .description('bring everything up, run a ticket if one is given, and stay')
    .argument('[ticket...]', 'the text of a ticket to run at once')
    .option('--once', 'leave after the ticket, with the exit code of its end', false)
    .option('--demo', 'run the sample ticket if none is given', false)
    .option('-p, --port <port>', 'port of the API', toPort)
    .option(...CONFIG)
    .action(async (words: string[], options: { once: boolean; demo: boolean; port?: number; config?: string }) => {
      done(await up({ ...options, text: words.length > 0 ? words.join(' ') : undefined }, output));
    });
}

function addJobCommands(program: Command, output: Output, done: (code: number) => void): void {
  withWish(program.command('submit').description('hand in a ticket').argument('<ticket...>', 'its text'))
    .option('--goal [objective]', 'work on it until it is reached; the ticket is the objective if left out')
    .option('-k, --key <key>', 'your own key: the same one again is the same job')
    .option('-a, --agent <name>', 'the agent; the first of the config if left out')
    .option('-t, --ticket <number>', 'your own number or title of it')
    .option('-w, --workspace <folder>', 'a folder under the workspace root; a new one if left out')
    .option('--plan', 'plan first: it may change nothing but PLAN.md until `pawl plan <session> off`')
    .option('--max-usd <amount>', 'what each turn may cost at most, in US dollars', toUsd)
    .option('--output-schema <file>', 'a file with the JSON Schema that the answer has to fit')
    .option('-f, --follow', 'watch it, and leave with the exit code of its end')
    .option('--wait', 'wait for it silently, and leave with the exit code of its end')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (words: string[], { config, json, follow, wait, outputSchema: file, ...flags }: SubmitFlags) => {
      const how = follow ? 'show' : wait ? 'wait' : null;
      const { key, agent, ticket, workspace, plan: plans, maxUsd } = flags;
      const schema = file === undefined ? {} : { outputSchema: readSchema(file) };
      const handedIn = { key, agent, ticket, workspace, plan: plans, maxUsd, ...schema, ...goalOfTicket(flags) };
      done(await submit({ ...handedIn, text: words.join(' ') }, { config, json, follow: how }, output));
    });
  program
    .command('ps')
    .description('what is open')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (options: Flags) => done(await ps(options, output)));
  program
    .command('show')
    .description('everything about a job, or how a session stands and what waits in it')
    .argument('<job|session>')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, options: Flags) => done(await show(id, options, output)));
  program
    .command('why')
    .description('why it is as it is, from the last stream to the goal, and what to do now')
    .argument('<turn, job or session>')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, options: Flags) => done(await why(id, options, output)));
  program
    .command('cost')
    .description('what a job or a session has cost so far, by model')
    .argument('<job or session>')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, options: Flags) => done(await cost(id, options, output)));
  program
    .command('events')
    .description('what happens in a job, until it comes to rest')
    .argument('<job>')
    .option('--after <number>', 'begin behind this event', toCount)
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (job: string, options: Flags & { after?: number }) => done(await events(job, options, output)));
  program
    .command('cancel')
    .description('ask a job to end')
    .argument('<job>')
    .option('--why <text>', 'kept with its end')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (job: string, options: Flags & { why?: string }) => done(await cancel(job, options, output)));
}

function addApprovalCommands(program: Command, output: Output, done: (code: number) => void): void {
  program
    .command('approvals')
    .description('calls that wait for a person')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (options: Flags) => done(await approvals(options, output)));
  program
    .command('approve')
    .description('let a call run')
    .argument('<approval>')
    .option('--edit <json>', 'run it with these arguments instead')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, { edit, ...options }: Flags & { edit?: string }) =>
      done(await decide(id, { answer: 'approved', editedArguments: edit }, options, output)),
    );
  program
    .command('reject')
    .description('stop a call and what follows it; ends the turn unless a message is given')
    .argument('<approval>')
    .option('-m, --message <text>', 'tell the agent this instead; the turn goes on')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, { message, ...options }: Flags & { message?: string }) =>
      done(
        await decide(
          id,
          message === undefined ? { answer: 'rejected' } : { answer: 'message', text: message },
          options,
          output,
        ),
      ),
    );
}

function addOutcomeCommand(program: Command, output: Output, done: (code: number) => void): void {
  program
    .command('outcome')
    .description('say what became of a call that nobody else can tell about')
    .argument('<approval>', 'as `pawl approvals` lists it')
    .addArgument(
      new Argument('<answer>', 'it took effect, it did not, or: make it once more').choices([
        'happened',
        'absent',
        'again',
      ]),
    )
    .option('-m, --message <text>', 'what to add for the agent')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, answer: OutcomeAnswer, { message, ...options }: Flags & { message?: string }) =>
      done(await decide(id, { answer, text: message }, options, output)),
    );
}

function addSessionCommands(program: Command, output: Output, done: (code: number) => void): void {
  program
    .command('plan')
    .description('let a session plan: while it is on, it may change nothing but PLAN.md')
    .argument('<session>')
    .addArgument(new Argument('<state>').choices(['on', 'off']))
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (session: string, state: 'on' | 'off', options: Flags) =>
      done(await plan(session, state, options, output)),
    );
}

function addReport(program: Command, output: Output, done: (code: number) => void): void {
  program
    .command('report')
    .description('report an event that an agent waits for')
    .argument('<job>', 'the job, or its session')
    .argument('<event>', 'its name, as the agent waits for it')
    .option('-m, --message <text>', 'what the agent is told of it')
    .option('--id <id>', 'your own id of it: the same one again is the same event')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (job: string, name: string, { message, id, ...options }: Flags & { message?: string; id?: string }) =>
      done(await report(job, { name, text: message, id }, options, output)),
    );
}

interface Flags {
  config?: string;
  json?: boolean;
}

interface SubmitFlags extends Flags, WishFlags {
  goal?: string | true;
  key?: string;
  agent?: string;
  ticket?: string;
  workspace?: string;
  plan?: boolean;
  maxUsd?: number;
  outputSchema?: string;
  follow?: boolean;
  wait?: boolean;
}

function addServers(program: Command, output: Output, done: (code: number) => void): void {
  program
    .command('worker')
    .description('a worker alone')
    .option(...CONFIG)
    .action(async (options: Flags) => done(await work(options, output)));
  program
    .command('serve')
    .description('the API alone')
    .option('--host <address>', 'where to listen; 127.0.0.1 if left out')
    .option('-p, --port <port>', 'port of the API', toPort)
    .option('--allow-host <name...>', 'a host name besides localhost under which it may be reached')
    .option(...CONFIG)
    .action(async ({ allowHost, ...options }: Flags & { host?: string; port?: number; allowHost?: string[] }) =>
      done(await serve({ ...options, hosts: allowHost }, output)),
    );
  program
    .command('migrate')
    .description('bring the schema of DATABASE_URL up to date')
    .option(...CONFIG)
    .action(async (options: Flags) => done(await migrate(options, output)));
}

function toPort(text: string): number {
  const port = toCount(text);
  if (port < 1 || port > 65_535) throw new InvalidArgumentError('It is not a port (1 to 65535).');
  return port;
}

function toUsd(text: string): number {
  const usd = Number(text);
  if (!/^\d{1,6}(\.\d{1,6})?$/.test(text) || usd === 0)
    throw new InvalidArgumentError('It is not an amount like 0.50.');
  return usd;
}

function toCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('It is not a number.');
  return Number(text);
}
