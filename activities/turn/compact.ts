import type { CompactOutcome } from '../../workflows/core/compact-outcome.ts';
import type { CompactRequest } from '../../workflows/core/requests.ts';
import type { Usage } from '../../workflows/core/sample-outcome.ts';
import { addUsage } from '../../workflows/core/usage.ts';
import { buildContext } from '../context/build.ts';
import { compactionMessage } from '../context/summary.ts';
import type { Deps } from '../deps.ts';
import type { HookEvent } from '../gate/hook-types.ts';
import { beating } from '../heartbeat.ts';
import { estimateMessage } from '../model/estimate.ts';
import type { ModelResult } from '../model/port.ts';
import type { NewEvent } from '../store/events.ts';
import { cutBy } from '../store/cut-by.ts';
import { enterRun } from '../store/fence.ts';
import { newId } from '../store/ids.ts';
import { type ReportBody, storeReports } from '../store/reports.ts';
import { openFacts } from '../store/open-facts.ts';
import { ownerOf } from '../store/owners.ts';
import { openSample } from '../store/samples.ts';
import { chainOn, type Link } from '../store/transcript.ts';
import { type CompactionPlan, planCompaction } from './plan-compaction.ts';
import { withCost } from './pricing.ts';
import { attemptOf, billOf, closeRequest, sendRequest } from './provider-request.ts';
import { endOfStream } from './reply.ts';
import { confirmRun, knownRuns } from './runs.ts';

/**
 * One provider request that writes a summary. First commit: the open usage row and `compaction.started`, which
 * is when PreCompact hooks are told. Second commit: the summary as a message behind the head, usage, and
 * `context.compacted`, which is when PostCompact hooks are told.
 */
export async function compact(deps: Deps, request: CompactRequest): Promise<CompactOutcome> {
  const { db } = deps.database;
  await enterRun(db, request.fence, knownRuns, confirmRun(deps));
  const owner = await ownerOf(db, request.fence.turn);
  const plan = await planCompaction(deps, owner, request);
  if (plan === 'off' || plan === 'nothing') return { kind: plan };
  const attempt = newId('att');
  const opened = await openSample<CompactOutcome>(db, {
    ...attemptOf(plan, request, attempt),
    request: billOf(plan),
    base: request.head,
    links: [],
    joined: [],
    events: [started(plan, request, attempt)],
  });
  if (opened.kind === 'answered') {
    await tellCompacted(deps, plan, opened.outcome);
    return opened.outcome;
  }
  if (opened.kind === 'too_many_lost') return { kind: 'attempts_lost', attempts: opened.lost };
  deps.notifier.moved(owner.stream);
  const { cause } = request;
  await tell(deps, plan, { id: `pre_compact/${plan.key}`, event: 'PreCompact', facts: { cause } });
  const { lostUsage } = opened;
  return await beating(attempt, () => ask({ deps, request, plan, attempt, lostUsage }));
}

function started(plan: CompactionPlan, { step, cause }: CompactRequest, attempt: string): NewEvent {
  const event = {
    kind: 'compaction.started',
    layer: 'stream',
    step,
    attempt,
    cause,
    model: plan.request.model,
  } as const;
  return { key: `compaction/${attempt}`, turn: plan.owner.id, event };
}

/** A compaction whose request is about to be sent. */
interface Asking {
  readonly deps: Deps;
  readonly request: CompactRequest;
  readonly plan: CompactionPlan;
  readonly attempt: string;
  /** What earlier attempts of this activity spent; the turn hears of it with this one's outcome. */
  readonly lostUsage: Usage;
}

async function ask(asking: Asking): Promise<CompactOutcome> {
  const { deps, request, plan, attempt, lostUsage } = asking;
  // A summary is nothing that anybody reads while it is written.
  const result = await sendRequest(deps, plan, () => {});
  const link = isSummary(result) ? await summaryLink(deps, plan, result.text) : null;
  const usage = withCost(result.usage, plan.pricing);
  const outcome = toOutcome(plan, { link, result, usage: addUsage(usage, lostUsage) });
  const closing = {
    ...attemptOf(plan, request, attempt),
    outcome,
    isFinal: outcome.kind === 'compacted' || outcome.kind === 'cut',
    usage,
    reply: link,
    wasShown: false,
    calls: [],
  };
  // No message cuts a compaction.
  const cause = result.kind === 'cut' ? await cutBy(deps.database.db, plan.owner.id) : null;
  const ended = endOfStream(closing, result, null, cause?.kind === 'cancel' ? cause : null);
  const events = [ended, ...compactedEvents(asking, outcome)];
  const kept = await closeRequest<CompactOutcome>(deps, plan, result, { ...closing, events });
  await tellCompacted(deps, plan, kept);
  return kept;
}

/** Also by the attempt that finds the summary made: whoever made it may have died before this. */
async function tellCompacted(deps: Deps, plan: CompactionPlan, outcome: CompactOutcome): Promise<void> {
  if (outcome.kind !== 'compacted') return;
  const { head, beforeTokens, afterTokens } = outcome;
  await tell(deps, plan, { id: `post_compact/${head}`, event: 'PostCompact', facts: { beforeTokens, afterTokens } });
}

interface Told {
  readonly id: string;
  readonly event: HookEvent;
  readonly facts: NonNullable<ReportBody['facts']>;
}

/** A report for hooks, kept once by its id; nothing where nobody listens. */
async function tell(deps: Deps, { owner }: CompactionPlan, { id, event, facts }: Told): Promise<void> {
  if (!deps.hooks.has(event)) return;
  await storeReports(deps.database.db, [{ id, body: { event, session: owner.session, turn: owner.id, facts } }]);
  deps.reporter.wake();
}

/** A refusal says nothing of what it would stand for. */
function isSummary(result: ModelResult): result is ModelResult & { kind: 'reply' } {
  return result.kind === 'reply' && result.finish !== 'content_filter';
}

/** The summary behind the head; nothing where the model wrote none. */
async function summaryLink(deps: Deps, plan: CompactionPlan, written: string): Promise<Link | null> {
  if (written.trim() === '') return null;
  const facts = await openFacts(deps.database.db, plan.owner.session);
  const body = compactionMessage(plan.view, written, plan.keptFrom, facts);
  const head = { hash: plan.chain[plan.chain.length - 1]?.hash ?? '', depth: plan.depth };
  return chainOn(head, [body], estimateMessage)[0] ?? null;
}

interface Got {
  readonly link: Link | null;
  readonly result: ModelResult;
  readonly usage: Usage;
}

function toOutcome(plan: CompactionPlan, { link, result, usage }: Got): CompactOutcome {
  switch (result.kind) {
    case 'reply': {
      if (!link) return { kind: 'empty', usage };
      const { beforeTokens } = plan;
      const afterTokens = buildContext([...plan.chain, link], plan.frame).estimateTokens;
      return { kind: 'compacted', head: link.hash, beforeTokens, afterTokens, usage };
    }
    case 'cut':
      return { kind: 'cut' };
    default: {
      // The note may quote the provider; it stays out of the history.
      const { note: _note, ...failure } = result;
      return { ...failure, usage };
    }
  }
}

function compactedEvents({ plan, request, attempt }: Asking, outcome: CompactOutcome): NewEvent[] {
  if (outcome.kind !== 'compacted') return [];
  const { head: message, beforeTokens, afterTokens } = outcome;
  const { replaced, view, owner } = plan;
  const kept = view.links.length - replaced;
  return [
    {
      key: `compacted/${attempt}`,
      turn: owner.id,
      event: {
        kind: 'context.compacted',
        layer: 'turn',
        step: request.step,
        message,
        replaced,
        kept,
        beforeTokens,
        afterTokens,
      },
    },
  ];
}
