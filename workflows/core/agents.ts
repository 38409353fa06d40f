import type { End } from './ends.ts';
import { least, type Limits, POLICY } from './policy.ts';

/** Names of the tools that start sub-agents and wait for them. */
export const AGENT_TOOLS = { spawn: 'spawn_agent', wait: 'wait_agents' } as const;

/** `foreground`: the call waits for it, and it ends with its turn; `background`: the session has it. */
export type AgentMode = 'foreground' | 'background';

/** What the sub-agents of a turn count against its budgets: of those that run their leases, of the others what they spent. */
export interface AgentsCount {
  /** Grows with each start and end; the count with the highest one is the newest. */
  readonly version: number;
  readonly tokens: number;
  readonly microUsd: number;
}

/** A session has running sub-agents, none of which this turn has started. */
export const NO_AGENTS: AgentsCount = { version: 0, tokens: 0, microUsd: 0 };

const BELOW = '/agent/';

/** Sub-agents are named by their parent; n is never used again. Without it: what all their names begin with. */
export function agentSessionId(parent: string, n: number | ''): string {
  return `${parent}${BELOW}${n}`;
}

/** 0 for a session that was not started by another one. */
export function depthOf(session: string): number {
  return session.split(BELOW).length - 1;
}

/** What all waits of a session for its sub-agents are told by. */
export function agentsWaitId(session: string): string {
  return `${session}/agents`;
}

/** The tools that a session may be offered: at the last depth nothing starts another one. */
export function toolsAtDepth(session: string, tools: readonly string[]): readonly string[] {
  if (depthOf(session) < POLICY.subAgents.depth) return tools;
  return tools.filter((name) => name !== AGENT_TOOLS.spawn && name !== AGENT_TOOLS.wait);
}

/** What a sub-agent may spend; null: nobody set a limit. */
export interface Lease {
  readonly tokens: number | null;
  readonly microUsd: number | null;
}

export interface LeaseAsked {
  /** Of the turn that starts it. */
  readonly limits: Pick<Limits, 'maxTokens' | 'maxMicroUsd'>;
  /** What that turn has spent and leased already. */
  readonly spent: { readonly tokens: number; readonly microUsd: number };
  /** What the model wants it to have; null: whatever is fit. */
  readonly asked: Lease;
  /** What its own definition allows. */
  readonly own: Pick<Limits, 'maxTokens' | 'maxMicroUsd'>;
}

export type LeaseGiven =
  | { readonly kind: 'given'; readonly lease: Lease }
  | {
      readonly kind: 'refused';
      readonly budget: 'tokens' | 'usd';
      readonly asked: number | null;
      readonly available: number;
    };

/** A lease out of the rest of a turn's budgets, all of it or none; something is kept back for the turn's own last words. */
export function leaseOf({ limits, spent, asked, own }: LeaseAsked): LeaseGiven {
  const tokens = share(limits.maxTokens, spent.tokens, asked.tokens, own.maxTokens);
  if (tokens.kind === 'short') return { ...tokens, kind: 'refused', budget: 'tokens', asked: asked.tokens };
  const usd = share(limits.maxMicroUsd, spent.microUsd, asked.microUsd, own.maxMicroUsd);
  if (usd.kind === 'short') return { ...usd, kind: 'refused', budget: 'usd', asked: asked.microUsd };
  return { kind: 'given', lease: { tokens: tokens.amount, microUsd: usd.amount } };
}

type Share =
  | { readonly kind: 'enough'; readonly amount: number | null }
  | { readonly kind: 'short'; readonly available: number };

function share(allowed: number | null, spent: number, asked: number | null, own: number | null): Share {
  if (allowed === null) return { kind: 'enough', amount: least(asked, own) };
  const { keptShare, usualShare } = POLICY.subAgents;
  const available = Math.max(0, allowed - Math.ceil(allowed * keptShare) - spent);
  const amount = least(asked ?? Math.floor(available * usualShare), own) ?? available;
  return (asked ?? 1) > available || amount < 1 ? { kind: 'short', available } : { kind: 'enough', amount };
}

/** The limits of a turn under a lease. */
export function leased(limits: Limits, { tokens, microUsd }: Lease): Limits {
  return { ...limits, maxTokens: least(limits.maxTokens, tokens), maxMicroUsd: least(limits.maxMicroUsd, microUsd) };
}

/** Limits that an agent's own definition does not name are those of the agent that starts it; none is lost on the way. */
export function inheritedLimits(own: Limits, named: readonly string[], parent: Limits): Limits {
  const of = (name: 'maxSteps' | 'maxTokens' | 'maxMicroUsd' | 'maxRunningMs') =>
    (named.includes(name) ? own[name] : null) ?? parent[name];
  return {
    ...own,
    maxSteps: of('maxSteps'),
    maxTokens: of('maxTokens'),
    maxMicroUsd: of('maxMicroUsd'),
    maxRunningMs: of('maxRunningMs'),
    notAfterMs: least(own.notAfterMs, parent.notAfterMs),
  };
}

/**
 * Which sub-agents of a session are cancelled when a turn of it ends: those that its calls waited for always; the
 * others where somebody or a limit stopped the turn, and where nobody is left to read their ends.
 */
export function cascadeOf(end: Pick<End, 'reason' | 'detail'>, session: string): 'foreground' | 'all' {
  if (depthOf(session) > 0 || end.reason === 'ABORTED') return 'all';
  return end.reason === 'INTERRUPTED' && end.detail === 'terminated' ? 'all' : 'foreground';
}
