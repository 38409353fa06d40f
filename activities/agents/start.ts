import { eq, sql } from 'drizzle-orm';
import { agentSessionId, depthOf, inheritedLimits, type Lease, leased, leaseOf } from '../../workflows/core/agents.ts';
import type { WaitLook } from '../../workflows/core/gate.ts';
import { classOf } from '../../workflows/core/inputs.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import type { Tx } from '../store/database.ts';
import { agentOf } from '../store/definitions.ts';
import { type NewEvent, recordEvents } from '../store/events.ts';
import { contentHash, rootHash, storable } from '../store/hash.ts';
import { newId } from '../store/ids.ts';
import { limitsWith } from '../store/goal-turns.ts';
import { storeReports } from '../store/reports.ts';
import { agent, input, session, type StoredAgent, subAgent, turn } from '../store/schema.ts';
import {
  agentOfSession,
  type AgentRow,
  countAgents,
  leaseOfRow,
  runningAgents,
  spentByTurn,
} from '../store/sub-agents.ts';
import type { WaitPlan } from '../tools/define-tool.ts';
import { type Looking, over } from '../turn/wait-over.ts';

type AgentPlan = WaitPlan & { readonly kind: 'agent' };

/** A sub-agent that may be started: by this definition, under this lease. */
interface Start {
  readonly kind: 'start';
  readonly definition: StoredAgent;
  readonly lease: Lease;
  readonly own: AgentRow | null;
}

/** Starts a sub-agent, all of it in this transaction, or says why not: a refusal is the call's result. */
export async function startAgent(tx: Tx, at: Looking, plan: AgentPlan, agents: Deps['agents']): Promise<WaitLook> {
  const start = await mayStart(tx, at, plan, agents);
  if (start.kind === 'refused') return await over(tx, at, 'error', start.text);
  const id = await store(tx, at, plan, start);
  const started = startedEvent(at, plan, start, id);
  if (at.hooks.has('SubagentStart')) {
    const facts = { agent: id, name: plan.agent, mode: plan.mode };
    const body = { event: 'SubagentStart', session: at.owner.session, turn: at.owner.id, facts } as const;
    await storeReports(tx, [{ id: `agent_start/${id}`, body }]);
  }
  if (plan.mode === 'background') return await over(tx, at, 'ok', background(id, plan, start.lease), [started]);
  await recordEvents(tx, at.owner.session, [started]);
  return { kind: 'waiting', wait: id, untilMs: Date.now() + POLICY.subAgents.lookAgainMs };
}

/** Of one turn at a time, since that holds its lock: two calls never get the same rest. */
async function mayStart(
  tx: Tx,
  { owner }: Looking,
  plan: AgentPlan,
  agents: Deps['agents'],
): Promise<Start | { readonly kind: 'refused'; readonly text: string }> {
  const refused = (text: string) => ({ kind: 'refused', text }) as const;
  const { depth, atOnce } = POLICY.subAgents;
  const pinned = await agentOf(tx, owner.agent);
  const names = pinned.agents ?? [];
  if (!names.includes(plan.agent)) {
    return refused(
      `There is no agent "${plan.agent.slice(0, 64)}" that you may start; there are: ${names.join(', ')}.`,
    );
  }
  if (depthOf(owner.session) >= depth) return refused(`Sub-agents are at most ${depth} deep: do this yourself.`);
  if ((await runningAgents(tx, owner.session)) >= atOnce) {
    return refused(`At most ${atOnce} sub-agents run at once: wait until one has ended.`);
  }
  const known = agents(plan.agent);
  if (!known) return refused(`The agent ${plan.agent} is not in the config any more.`);
  const own = await agentOfSession(tx, owner.session);
  const whole = own ? leased(pinned.limits, leaseOfRow(own)) : pinned.limits;
  const [begun] = await tx.select({ input: turn.input }).from(turn).where(eq(turn.id, owner.id));
  const limits = begun ? await limitsWith(tx, whole, begun.input) : whole;
  const definition = {
    ...known.agent,
    attended: known.agent.attended && pinned.attended,
    limits: inheritedLimits(known.agent.limits, known.named, limits),
  };
  const [counted, spent] = [await countAgents(tx, owner.id), await spentByTurn(tx, owner.id)];
  const given = leaseOf({
    limits,
    spent: { tokens: counted.tokens + spent.tokens, microUsd: counted.microUsd + spent.microUsd },
    asked: { tokens: plan.maxTokens, microUsd: plan.maxMicroUsd },
    own: definition.limits,
  });
  if (given.kind === 'refused') return refused(shortText(given));
  if (given.lease.microUsd !== null && !definition.prices) {
    return refused(`The agent ${plan.agent} can't be started under a budget in US dollars: it has no prices.`);
  }
  return { kind: 'start', definition, lease: given.lease, own };
}

const MICRO = 1_000_000;

function shortText({
  budget,
  asked,
  available,
}: {
  budget: 'tokens' | 'usd';
  asked: number | null;
  available: number;
}) {
  const amount = (value: number) => (budget === 'tokens' ? `${value} tokens` : `$${value / MICRO}`);
  const wanted = asked === null ? '' : ` of the ${amount(asked)} that you ask for`;
  return `Not started: ${amount(available)}${wanted} can be given away. What runs holds its part until it ends; something is kept for your own last words.`;
}

/** Session, prompt and lease. Returns the session's id. */
async function store(tx: Tx, { owner, row }: Looking, plan: AgentPlan, start: Start): Promise<string> {
  const { definition, lease, own } = start;
  const [last] = await tx
    .select({ n: sql<number>`coalesce(max(${subAgent.n}), 0)`.mapWith(Number) })
    .from(subAgent)
    .where(eq(subAgent.parent, owner.session));
  const n = (last?.n ?? 0) + 1;
  const id = agentSessionId(owner.session, n);
  const [parent] = await tx.select().from(session).where(eq(session.id, owner.session));
  if (!parent) throw new Error('the session of a turn is not in the store');
  const hash = contentHash(definition);
  await tx.insert(agent).values({ hash, name: definition.name, definition }).onConflictDoNothing();
  await tx.insert(session).values({
    id,
    tenant: parent.tenant,
    stream: parent.stream,
    parent: parent.id,
    agent: hash,
    head: rootHash(parent.tenant, id),
    plan: parent.plan,
    workspaceKind: parent.workspaceKind,
    workspacePath: parent.workspacePath,
    workspaceQueue: parent.workspaceQueue,
  });
  await tx.insert(input).values({
    id: newId('in'),
    session: id,
    kind: 'prompt',
    class: classOf('prompt'),
    body: storable(plan.prompt),
    sender: owner.session,
  });
  await tx.insert(subAgent).values({
    session: id,
    parent: owner.session,
    n,
    call: row.key,
    turn: owner.id,
    origin: own?.origin ?? (await originOf(tx, owner.id)),
    name: plan.agent,
    mode: plan.mode,
    leaseTokens: lease.tokens,
    leaseMicroUsd: lease.microUsd,
  });
  return id;
}

async function originOf(tx: Tx, turnId: string): Promise<string> {
  const [row] = await tx.select({ origin: turn.origin }).from(turn).where(eq(turn.id, turnId));
  if (!row) throw new Error('a turn is not in the store');
  return row.origin;
}

function startedEvent({ owner, row }: Looking, plan: AgentPlan, { lease }: Start, id: string): NewEvent {
  return {
    key: `agent/${id}`,
    turn: owner.id,
    event: {
      kind: 'agent.started',
      layer: 'batch',
      agent: id,
      name: plan.agent,
      key: row.key,
      mode: plan.mode,
      leaseTokens: lease.tokens,
      leaseMicroUsd: lease.microUsd,
    },
  };
}

function background(id: string, { agent: name }: AgentPlan, { tokens }: Lease): string {
  const may = tokens === null ? '' : ` It may use ${tokens} tokens.`;
  return `Sub-agent ${id} (${name}) works in the background.${may} You will be told of its end; wait_agents waits for it.`;
}
