import type { GoalBudget } from '../../workflows/core/goal/goal-state.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { dearestMicroUsd } from '../../workflows/core/usage.ts';
import type { CommandCheck, GoalCheck, GoalJudge, StoredAgent, ToolCheck } from './schema.ts';

/** The most that may be asked for. */
export const GOAL_BOUNDS = {
  checks: POLICY.goal.checks.most,
  checkSeconds: POLICY.goal.checks.mostLimitS,
  sceptics: POLICY.goal.sceptics.most,
  objectiveChars: POLICY.goal.objectiveChars,
} as const;

export interface BudgetWish {
  readonly turns?: number | undefined;
  readonly tokens?: number | undefined;
  readonly usd?: number | undefined;
  /** Of working time, without waiting. */
  readonly hours?: number | undefined;
}

type Timed<C> = Omit<C, 'timeoutSeconds'> & { readonly timeoutSeconds?: number | undefined };

/** A command line, the same with its time limit, or a call of one of the agent's tools. */
export type CheckWish =
  | string
  | Timed<CommandCheck>
  | (Timed<Omit<ToolCheck, 'arguments'>> & { readonly arguments?: ToolCheck['arguments'] | undefined });

/** Whether a tool may be a check of an agent's goals, as far as this process can tell; `why` says what to do. */
export type JudgeCheck = (
  agent: StoredAgent,
  check: ToolCheck,
) => { readonly ok: true } | { readonly ok: false; readonly why: string };

/** How a goal is judged, and what it may use. */
export interface GoalWish {
  /** Made after each turn: when all pass, the goal is reached. */
  readonly checks?: readonly CheckWish[] | undefined;
  /** How many sceptics try a candidate; 1 if left out. */
  readonly sceptics?: number | undefined;
  /** Who judges; the agent's own model if left out. */
  readonly judge?: GoalJudge | undefined;
  readonly budget?: BudgetWish | undefined;
}

export interface PlannedGoal {
  readonly checks: readonly GoalCheck[];
  readonly judge: GoalJudge;
  readonly budget: GoalBudget;
  readonly sceptics: number;
}

const MICRO = 1_000_000;
const HOUR_MS = 3_600_000;

type Planned<T> = { readonly kind: 'planned' } & T;
export type Refused = { readonly kind: 'refused'; readonly why: string };

/** The wish with everything that was left out; what could not be kept is refused. */
export function planGoal(
  agent: StoredAgent,
  wish: GoalWish,
  judgeCheck: JudgeCheck,
): Planned<{ readonly goal: PlannedGoal }> | Refused {
  const { sceptics = POLICY.goal.sceptics.default, judge = {} } = wish;
  if (!Number.isInteger(sceptics) || sceptics < 1 || sceptics > POLICY.goal.sceptics.most)
    return refused(`A goal may have 1 to ${POLICY.goal.sceptics.most} sceptics.`);
  const change = planChange({ agent, judge }, wish, judgeCheck);
  if (change.kind === 'refused') return change;
  const { turns, tokens, runningMs } = POLICY.goal;
  const named = { turns, tokens, runningMs, ...change.budget };
  const budget = { microUsd: usualMicroUsd({ agent, judge }, named.tokens), ...named };
  return { kind: 'planned', goal: { checks: change.checks ?? [], judge, sceptics, budget } };
}

interface Judged {
  readonly agent: StoredAgent;
  readonly judge: GoalJudge;
}

/** Checks and budget that a goal is to have from now on; what is left out stays. */
export function planChange(
  { agent, judge }: Judged,
  { checks, budget = {} }: Pick<GoalWish, 'checks' | 'budget'>,
  judgeCheck: JudgeCheck,
): Planned<{ readonly checks: readonly GoalCheck[] | null; readonly budget: Partial<GoalBudget> }> | Refused {
  const all = checks?.map(toCheck) ?? null;
  const why = (all && faultOfChecks(agent, all, judgeCheck)) ?? faultOfBudget({ agent, judge }, budget);
  return why === null ? { kind: 'planned', checks: all, budget: changedBudget(budget) } : refused(why);
}

function refused(why: string): Refused {
  return { kind: 'refused', why };
}

function toCheck(check: CheckWish): GoalCheck {
  const { defaultLimitS: timeoutSeconds } = POLICY.goal.checks;
  if (typeof check === 'string') return { command: check, timeoutSeconds };
  const limit = check.timeoutSeconds ?? timeoutSeconds;
  if ('command' in check) return { command: check.command, timeoutSeconds: limit };
  const { tool, arguments: args = {}, expect } = check;
  return { tool, arguments: args, timeoutSeconds: limit, ...(expect === undefined ? {} : { expect }) };
}

function faultOfChecks(agent: StoredAgent, checks: readonly GoalCheck[], judgeCheck: JudgeCheck): string | null {
  const { mostLimitS, most } = POLICY.goal.checks;
  if (checks.length > most) return `A goal may have ${most} checks: put several into one script.`;
  for (const check of checks) {
    const { timeoutSeconds: s } = check;
    if (!(s >= 1 && s <= mostLimitS)) return `A check may take 1 to ${mostLimitS} seconds.`;
    const judged = 'tool' in check ? judgeCheck(agent, check) : null;
    if (judged?.ok === false) return judged.why;
    if ('command' in check && check.command.trim() === '') return 'A check has no command: write the command line.';
  }
  return null;
}

function faultOfBudget(judged: Judged, budget: BudgetWish): string | null {
  const { turns, tokens, usd, hours } = budget;
  const kept = changedBudget(budget);
  for (const [name, value] of Object.entries({ turns, tokens })) {
    if (value !== undefined && !isCounted(value))
      return `A budget of ${value} ${name} can't be kept: give a whole number above 0.`;
  }
  for (const [name, value, counted] of [
    ['USD', usd, kept.microUsd],
    ['hours', hours, kept.runningMs],
  ] as const) {
    if (value !== undefined && !isCounted(counted))
      return `A budget of ${value} ${name} can't be kept: give a number above 0, or leave it out.`;
  }
  const { agent } = judged;
  const unpriced = usd === undefined ? undefined : modelsOf(judged).find((model) => !agent.prices?.[model]);
  if (unpriced === undefined) return null;
  return `No price of ${unpriced} is known, so a budget in USD could not be kept: give agent ${agent.name} prices in the config, or leave it out.`;
}

/** As a budget is kept: `NaN` and `Infinity` would come back as null, which is no limit. */
function isCounted(value: number | null | undefined): boolean {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

function modelsOf({ agent, judge }: Judged): readonly string[] {
  return [agent.model, judge.model ?? agent.model, ...(agent.fallback ? [agent.fallback.model] : [])];
}

/** What the tokens cost at the dearest of the prices, where all of them are known. */
export function usualMicroUsd(judged: Judged, tokens: number): number | null {
  const costs = modelsOf(judged).map((model) => {
    const prices = judged.agent.prices?.[model];
    return prices ? dearestMicroUsd(tokens, prices) : null;
  });
  return costs.reduce((most, cost) => (most === null || cost === null ? null : Math.max(most, cost)));
}

/** Only what was asked for. */
function changedBudget({ turns, tokens, usd, hours }: BudgetWish): Partial<GoalBudget> {
  return {
    ...(turns === undefined ? {} : { turns }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(usd === undefined ? {} : { microUsd: Math.round(usd * MICRO) }),
    ...(hours === undefined ? {} : { runningMs: Math.round(hours * HOUR_MS) }),
  };
}
