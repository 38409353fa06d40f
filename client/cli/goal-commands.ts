import { randomUUID } from 'node:crypto';
import type { GoalOrder } from '../goal-orders.ts';
import type { NewGoalRequest } from '../new-goal.ts';
import { EXIT, goalExitCode } from './exit-code.ts';
import { goalLine, goalText, recurringLine, recurringText } from './goal-text.ts';
import type { Output } from './output.ts';
import { TENANT, whoami } from './ticket.ts';
import { UsageError } from './usage-error.ts';
import { withRuns } from './with-runs.ts';

interface Common {
  readonly config?: string | undefined;
  readonly json?: boolean | undefined;
}

export type GoalTicket = Omit<NewGoalRequest, 'tenant' | 'key' | 'by'> & { readonly key?: string | undefined };

export async function createGoal(ticket: GoalTicket, options: Common, output: Output): Promise<number> {
  if (ticket.objective.trim() === '') throw new UsageError('The goal has no objective.');
  return await withRuns(options.config, async (runs) => {
    const created = await runs.createGoal({ ...ticket, tenant: TENANT, key: ticket.key ?? randomUUID(), by: whoami() });
    switch (created.kind) {
      case 'accepted': {
        const { goal, session, isNew } = created;
        if (options.json) output.json({ goal, session, isNew });
        else output.line(isNew ? goal : `${goal}  (this key had brought it before)`);
        return EXIT.ok;
      }
      case 'conflict':
        throw new UsageError(`The key was used for another goal, ${created.goal}: take another key.`);
      case 'another_is_open':
        throw new UsageError('The session has an open goal: edit or cancel that one, or take another session.');
      case 'unknown_session':
        throw new UsageError(`There is no session ${ticket.session ?? ''}; \`pawl show <job>\` names that of a job.`);
      case 'unknown_agent':
        throw new UsageError(`There is no agent ${created.asked}; known are ${created.known.join(', ')}.`);
      case 'refused':
        throw new UsageError(created.why);
    }
  });
}

export async function showGoal(id: string, options: Common, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const found = await runs.goal(TENANT, id);
    const recurring = found ? null : await runs.recurring(TENANT, id);
    if (recurring) {
      if (options.json) output.json(recurring);
      else output.line(recurringText(recurring));
      return EXIT.ok;
    }
    const goal = found ?? noSuchGoal(id);
    if (options.json) output.json(goal);
    else output.line(goalText(goal));
    return goalExitCode(goal.status);
  });
}

export async function listGoals(options: Common & { readonly all?: boolean }, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const asked = { open: !options.all };
    const recurring = await runs.recurringGoals(TENANT, asked);
    for (const each of recurring) {
      if (options.json) output.json(each);
      else output.line(recurringLine(each));
    }
    const goals = await runs.goals(TENANT, asked);
    for (const goal of goals) {
      if (options.json) output.json(goal);
      else output.line(goalLine(goal));
    }
    if (goals.length + recurring.length === 0 && !options.json) output.note('No goal is open.');
    return EXIT.ok;
  });
}

export async function orderGoal(
  id: string,
  order: Omit<GoalOrder, 'by'>,
  options: Common,
  output: Output,
): Promise<number> {
  const isNothing = [order.objective, order.budget, order.checks].every((each) => each === undefined);
  if (order.kind === 'edit' && isNothing)
    throw new UsageError(
      'Say what to change: --objective, --check, --check-tool, --turns, --tokens, --usd or --hours.',
    );
  if (order.objective?.trim() === '') throw new UsageError('The goal has no objective.');
  return await withRuns(options.config, async (runs) => {
    const answer = (await runs.orderGoal(TENANT, id, { ...order, by: whoami() })) ?? noSuchGoal(id);
    if (answer.kind === 'conflict') throw new UsageError('This id was used for another command: take another one.');
    if (answer.kind === 'refused') throw new UsageError(answer.why);
    if (answer.kind === 'final') throw new UsageError(`The goal is ${answer.status}: begin another one.`);
    if (options.json) output.json({ goal: id, status: answer.status });
    else output.line(`The goal is ${answer.status}.${order.kind === 'resume' ? stillLimited(id, answer.status) : ''}`);
    return EXIT.ok;
  });
}

function stillLimited(id: string, status: string): string {
  return status.startsWith('budget_limited') ? ` Raise its budget: \`pawl goal edit ${id}\` has the options.` : '';
}

export async function wakeGoal(
  id: string,
  request: { readonly id?: string | undefined; readonly event?: string | undefined },
  options: Common,
  output: Output,
): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const woken = (await runs.wakeGoal(TENANT, id, { ...request, by: whoami() })) ?? noSuchGoal(id);
    if (woken === 'recurring')
      throw new UsageError(`${id} is a recurring goal: wake one of its rounds, which \`pawl goal show ${id}\` lists.`);
    if (options.json) output.json({ goal: id, ...woken });
    else if (woken.outcome === null) output.line('The goal is told.');
    else output.line(`This wake came before: ${woken.outcome}${woken.why === null ? '' : ` (${woken.why})`}.`);
    return EXIT.ok;
  });
}

function noSuchGoal(id: string): never {
  throw new UsageError(`There is no goal ${id}; \`pawl goal list\` lists the open ones.`);
}
