import { Context } from '@temporalio/activity';
import { and, desc, eq, sql } from 'drizzle-orm';
import type { StopVerdict } from '../../workflows/core/gate.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { StopGateRequest } from '../../workflows/core/requests.ts';
import type { Deps } from '../deps.ts';
import type { HookFacts } from '../gate/hook-types.ts';
import type { AskedStop } from '../gate/hooks.ts';
import { REASON_CHARS } from '../gate/texts.ts';
import { REMINDER_TEXTS } from '../context/reminders.ts';
import { estimateMessage } from '../model/estimate.ts';
import type { Db } from '../store/database.ts';
import type { NewEvent } from '../store/events.ts';
import { enterRun } from '../store/fence.ts';
import { sha256 } from '../store/hash.ts';
import { ownerOf, type TurnOwner } from '../store/owners.ts';
import { NO_CHANGE, refusal } from '../store/samples.ts';
import { event } from '../store/schema.ts';
import { chainOn, type Link, loadChain } from '../store/transcript.ts';
import { commitTurn, findCommit } from '../store/turn-commit.ts';
import { fitText } from '../tools/text.ts';
import { lastTextOf } from '../store/last-text.ts';
import { confirmRun, knownRuns } from './runs.ts';

/**
 * Asks the hooks of the stop gate whether the turn may end on its last reply. The answer is committed once; a
 * reason to go on becomes a message on the chain, and the workflow learns its hash.
 */
export async function stopGate(deps: Deps, request: StopGateRequest): Promise<StopVerdict> {
  const { db } = deps.database;
  await enterRun(db, request.fence, knownRuns, confirmRun(deps));
  const owner = await ownerOf(db, request.fence.turn);
  const key = sha256('stop_gate', owner.id, request.head, String(request.asks));
  const before = await findCommit<StopVerdict>(db, key);
  if (before) return before;
  const asked = request.purpose === 'settle' ? CUT : await ask(deps, owner, request);
  const verdict = await keep(deps, owner, { request, key, asked });
  deps.notifier.moved(owner.stream);
  return verdict;
}

/** Nobody is asked any more: the turn goes on with the message that could not wait. */
const CUT = { kind: 'cut', failures: [] } as const;

async function ask(deps: Deps, owner: TurnOwner, request: StopGateRequest): Promise<AskedStop> {
  const facts = await factsOf(deps, owner, request);
  return await deps.hooks.askStop(facts, Context.current().cancellationSignal);
}

async function factsOf(deps: Deps, owner: TurnOwner, request: StopGateRequest): Promise<HookFacts> {
  return {
    session: owner.session,
    turn: owner.id,
    workspace: owner.workspacePath,
    head: request.head,
    lastText: await lastTextOf(deps, request.head),
    ask: request.asks,
    stopHookActive: request.blocks > 0,
    backgroundWork: await backgroundWork(deps.database.db, owner.session),
  };
}

/** Sessions below this one that have something running or waiting. */
async function backgroundWork(db: Db, session: string): Promise<readonly { kind: 'agent'; session: string }[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select s.id from pawl.session s where s.parent = ${session} and (
      exists (select from pawl.turn t where t.session = s.id and t.ended_at is null)
      or exists (select from pawl.input i where i.session = s.id and i.status = 'queued'))
    order by s.created_at`);
  return rows.map(({ id }) => ({ kind: 'agent', session: id }));
}

interface Answered {
  readonly request: StopGateRequest;
  readonly key: string;
  readonly asked: AskedStop | typeof CUT;
}

async function keep(deps: Deps, owner: TurnOwner, answered: Answered): Promise<StopVerdict> {
  const { db } = deps.database;
  const { request, key } = answered;
  const link = await reasonLink(deps, answered);
  const verdict = verdictOf(answered.asked, link);
  const committed = await commitTurn<StopVerdict>(db, {
    ...NO_CHANGE,
    fence: request.fence,
    keyed: { key, result: verdict },
    step: 0,
    base: request.head,
    links: link ? [link] : [],
    events: eventsOf(deps, owner, answered, link),
  });
  if (committed.kind === 'done_before') return committed.result;
  if (committed.kind !== 'committed') throw await refusal(db, request.fence);
  if (link) deps.chains.add([link]);
  return verdict;
}

async function reasonLink(deps: Deps, { asked, request }: Answered): Promise<Link | null> {
  if (asked.kind !== 'block') return null;
  const chain = await loadChain(deps.database.db, deps.chains, request.head);
  const text = fitText(deps.masker.text(asked.reason).trim(), POLICY.tools.resultChars) || REMINDER_TEXTS.stop_gate;
  const head = { hash: request.head, depth: chain[chain.length - 1]?.depth ?? 0 };
  return chainOn(head, [{ kind: 'reminder', code: 'stop_gate', text }], estimateMessage)[0] ?? null;
}

function verdictOf(asked: Answered['asked'], link: Link | null): StopVerdict {
  if (asked.kind === 'stop') return { kind: 'stop', hook: asked.hook };
  return link ? { kind: 'block', head: link.hash } : { kind: 'pass' };
}

function eventsOf(deps: Deps, owner: TurnOwner, { asked, key, request }: Answered, link: Link | null): NewEvent[] {
  const why = asked.kind === 'stop' && asked.why !== null ? fitText(deps.masker.text(asked.why), REASON_CHARS) : null;
  return [
    ...asked.failures.map(
      (failure, n): NewEvent => ({
        key: `hook/${key}/${n}`,
        turn: owner.id,
        event: { kind: 'hook.failed', layer: 'turn', ...failure },
      }),
    ),
    {
      key: `stop_gate/${key}`,
      turn: owner.id,
      event: {
        kind: 'stop_gate.answered',
        layer: 'turn',
        answer: asked.kind,
        asks: request.asks,
        hook: asked.kind === 'block' || asked.kind === 'stop' ? asked.hook : null,
        message: link?.hash ?? null,
        why,
      },
    },
  ];
}

/** What the hook said that wanted the end of a turn. */
export async function stopReason(db: Db, turn: string): Promise<string | null> {
  const [row] = await db
    .select({ body: event.body })
    .from(event)
    .where(and(eq(event.turn, turn), eq(event.kind, 'stop_gate.answered')))
    .orderBy(desc(event.seq))
    .limit(1);
  return row?.body.kind === 'stop_gate.answered' ? row.body.why : null;
}
