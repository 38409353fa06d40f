import { eq } from 'drizzle-orm';
import type { Deps } from '../../../activities/deps.ts';
import type { Db, Tx } from '../../../activities/store/database.ts';
import { rootHash } from '../../../activities/store/hash.ts';
import { readCall } from '../../../activities/store/ledger.ts';
import { ownerOf } from '../../../activities/store/owners.ts';
import { input, session, subAgent, turn } from '../../../activities/store/schema.ts';
import type { Looking } from '../../../activities/turn/wait-over.ts';
import { type AgentMode, agentSessionId } from '../../../workflows/core/agents.ts';
import { id, seedCalls, type SeededTurn } from './seed.ts';

/** Sub-agents that a turn has started, one for each mode, each with its prompt. Returns their sessions. */
export async function seedAgents(db: Db, on: SeededTurn, ...modes: readonly AgentMode[]): Promise<string[]> {
  const calls = await seedCalls(db, on, ...modes.map(() => 'none' as const));
  return await db.transaction(async (tx) => {
    const ids: string[] = [];
    for (const [at, call] of calls.entries()) ids.push(await startAgent(tx, on, { call, n: at + 1, mode: modes[at]! }));
    return ids;
  });
}

/** What the start of a sub-agent writes. */
export async function startAgent(
  tx: Tx,
  on: SeededTurn,
  { call, n, mode }: { readonly call: string; readonly n: number; readonly mode: AgentMode },
): Promise<string> {
  const [parent] = await tx.select().from(session).where(eq(session.id, on.session));
  const [started] = await tx.select({ origin: turn.origin }).from(turn).where(eq(turn.id, on.turn));
  const own = agentSessionId(on.session, n);
  const { tenant, stream, agent, workspaceKind, workspacePath, workspaceQueue } = parent!;
  const same = { tenant, stream, agent, workspaceKind, workspacePath, workspaceQueue };
  await tx.insert(session).values({ id: own, parent: on.session, head: rootHash(tenant, own), ...same });
  const prompt = { kind: 'prompt', class: 'people', body: 'help', sender: on.session } as const;
  await tx.insert(input).values({ id: id('in'), session: own, ...prompt });
  const { origin } = started!;
  await tx
    .insert(subAgent)
    .values({ session: own, parent: on.session, n, call, turn: on.turn, origin, name: 'tester', mode });
  return own;
}

/** A call of a turn as an activity looks at it. `listens`: which events hooks are told of. */
export async function lookingAt(
  db: Db,
  on: SeededTurn,
  key: string,
  listens: (event: string) => boolean = () => false,
): Promise<Looking> {
  const row = (await readCall(db, key))!.call;
  const request = { fence: on.fence, assistant: row.assistant, ordinal: row.ordinal, interrupted: false };
  return { request, owner: await ownerOf(db, on.turn), row, hooks: { has: listens } as unknown as Deps['hooks'] };
}
