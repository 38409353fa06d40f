import { type Command, InvalidArgumentError } from 'commander';
import type { BudgetWish, CheckWish, GoalWish } from '../../activities/store/goal-plan.ts';
import { createGoal, listGoals, orderGoal, showGoal, wakeGoal } from './goal-commands.ts';
import type { Output } from './output.ts';
import { type ScheduleFlags, scheduleOf, withSchedule } from './schedule-flags.ts';
import { toToolCheck } from './tool-check-flag.ts';
import { UsageError } from './usage-error.ts';

const CONFIG = ['-c, --config <file>', 'the config file; pawl.config.ts here if there is one'] as const;
const JSON_OUT = ['--json', 'JSON, one value a line'] as const;

interface Flags {
  config?: string;
  json?: boolean;
}

interface BudgetFlags {
  turns?: number;
  tokens?: number;
  usd?: number;
  hours?: number;
}

interface CheckFlags {
  check?: CheckWish[];
  checkTool?: CheckWish[];
}

export interface WishFlags extends BudgetFlags, CheckFlags {
  sceptics?: number;
}

/** How it is judged and what it may use, as options of a command. */
export function withWish(command: Command): Command {
  return withBudget(
    withChecks(command).option(
      '--sceptics <number>',
      'how many try to refute that it is reached; 1 if left out',
      toNumber,
    ),
  );
}

function withChecks(command: Command): Command {
  const more =
    <T>(read: (text: string) => T) =>
    (text: string, before: readonly T[] = []) => [...before, read(text)];
  return command
    .option(
      '--check <command>',
      'run in the workspace after each turn; exit code 0: the goal is reached; may be given again',
      more((text: string) => text),
    )
    .option(
      '--check-tool <call>',
      'the same with a tool that only reads: its name, and its arguments as JSON; may be given again',
      more(toToolCheck),
    );
}

function withBudget(command: Command): Command {
  return command
    .option('--turns <number>', 'how many rounds at most', toNumber)
    .option('--tokens <number>', 'how many tokens at most', toNumber)
    .option('--usd <amount>', 'how many US dollars at most', toNumber)
    .option('--hours <number>', 'how many hours of work at most', toNumber);
}

function checksOf({ check, checkTool }: CheckFlags): readonly CheckWish[] | undefined {
  return check || checkTool ? [...(check ?? []), ...(checkTool ?? [])] : undefined;
}

function wishOf({ sceptics, ...flags }: WishFlags): GoalWish {
  const budget = budgetOf(flags);
  const checks = checksOf(flags);
  return {
    ...(checks ? { checks } : {}),
    ...(sceptics === undefined ? {} : { sceptics }),
    ...(budget ? { budget } : {}),
  };
}

/** The goal of a ticket; options of a goal without one are a mistake. */
export function goalOfTicket({ goal, ...flags }: WishFlags & { readonly goal?: string | true }): {
  readonly goal?: GoalWish & { readonly objective?: string };
} {
  const wish = wishOf(flags);
  if (goal === undefined && Object.keys(wish).length > 0)
    throw new UsageError('--check, --check-tool, --sceptics, --turns, --tokens, --usd and --hours go with --goal.');
  if (goal === undefined) return {};
  return { goal: { ...wish, ...(goal === true ? {} : { objective: goal }) } };
}

function budgetOf({ turns, tokens, usd, hours }: BudgetFlags): BudgetWish | undefined {
  const isAsked = [turns, tokens, usd, hours].some((each) => each !== undefined);
  return isAsked ? { turns, tokens, usd, hours } : undefined;
}

export function addGoalCommands(program: Command, output: Output, done: (code: number) => void): void {
  const goal = program.command('goal').description('objectives that are worked on until they are reached');
  const create = goal.command('create').description('give a session an objective');
  withSchedule(withWish(create.argument('<objective...>', 'its text')))
    .option('-s, --session <id>', 'a session, or a job of it; a new one if left out')
    .option('-a, --agent <name>', 'the agent of a new session')
    .option('-w, --workspace <folder>', 'a folder under the workspace root for a new session')
    .option('-k, --key <key>', 'your own key: the same one again is the same goal')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (words: string[], { session, agent, workspace, key, ...flags }: CreateFlags) => {
      const wanted = { ...wishOf(flags), ...scheduleOf(flags), objective: words.join(' ') };
      done(await createGoal({ ...wanted, session, agent, workspace, key }, flags, output));
    });
  goal
    .command('show')
    .description('how a goal stands, what it used, what woke it')
    .argument('<goal>')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, options: Flags) => done(await showGoal(id, options, output)));
  goal
    .command('list')
    .description('open goals, newest first')
    .option('--all', 'final ones as well')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (options: Flags & { all?: boolean }) => done(await listGoals(options, output)));
  addOrders(goal, output, done);
  goal
    .command('wake')
    .description('wake a goal that waits, is blocked, or rests on an outage')
    .argument('<goal>')
    .option('--event <name>', 'what has happened, where it waits for it by name')
    .option('--id <id>', 'your own id of it: twice is once woken')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, { event, id: key, ...options }: Flags & { event?: string; id?: string }) =>
      done(await wakeGoal(id, { event, id: key }, options, output)),
    );
}

interface CreateFlags extends Flags, WishFlags, ScheduleFlags {
  session?: string;
  agent?: string;
  workspace?: string;
  key?: string;
}

const ORDERS = [
  ['pause', 'no further round; one that runs goes to its end'],
  ['resume', 'go on, with fresh brakes and the budget that is left'],
  ['cancel', 'end it, and the round that runs'],
] as const;

function addOrders(goal: Command, output: Output, done: (code: number) => void): void {
  for (const [kind, description] of ORDERS) {
    goal
      .command(kind)
      .description(description)
      .argument('<goal>')
      .option('--why <text>', 'kept with it')
      .option(...JSON_OUT)
      .option(...CONFIG)
      .action(async (id: string, { why, ...options }: Flags & { why?: string }) =>
        done(await orderGoal(id, { kind, why }, options, output)),
      );
  }
  withBudget(withChecks(goal.command('edit').description('change it, from the next round on').argument('<goal>')))
    .option('--objective <text>', 'the new objective')
    .option('--why <text>', 'kept with it')
    .option(...JSON_OUT)
    .option(...CONFIG)
    .action(async (id: string, { objective, why, ...flags }: EditFlags) =>
      done(
        await orderGoal(
          id,
          { kind: 'edit', objective, why, budget: budgetOf(flags), checks: checksOf(flags) },
          flags,
          output,
        ),
      ),
    );
}

interface EditFlags extends Flags, BudgetFlags, CheckFlags {
  objective?: string;
  why?: string;
}

function toNumber(text: string): number {
  if (!/^\d{1,12}(\.\d{1,6})?$/.test(text) || Number(text) === 0)
    throw new InvalidArgumentError('It is not a number above 0.');
  return Number(text);
}
