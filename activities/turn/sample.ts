import { Context } from '@temporalio/activity';
import type { SampleRequest } from '../../workflows/core/requests.ts';
import type { SampleOutcome, Usage } from '../../workflows/core/sample-outcome.ts';
import { addUsage } from '../../workflows/core/usage.ts';
import { takeAnswer } from '../answer/take-answer.ts';
import type { Deps } from '../deps.ts';
import { beating } from '../heartbeat.ts';
import type { ModelResult } from '../model/port.ts';
import { claimSample } from '../store/claim-sample.ts';
import { cutBy } from '../store/cut-by.ts';
import { enterRun } from '../store/fence.ts';
import { newId } from '../store/ids.ts';
import { ownerOf } from '../store/owners.ts';
import { openSample } from '../store/samples.ts';
import { countAgents } from '../store/sub-agents.ts';
import { DeltaWriter } from './delta-writer.ts';
import { openingEvents, planSample, type SamplePlan } from './plan-sample.ts';
import { withCost } from './pricing.ts';
import { attemptOf, billOf, closeRequest, sendRequest } from './provider-request.ts';
import { closingEvents, type PlannedCall, replyLink, toCalls, toOutcome } from './reply.ts';
import { confirmRun, knownRuns } from './runs.ts';

/**
 * One provider request. First commit: what the transcript is owed, and the open usage row. Then the stream.
 * Second commit: reply, usage, stream end, under a key that every attempt of these bytes shares.
 */
export async function sample(deps: Deps, request: SampleRequest): Promise<SampleOutcome> {
  const outcome = await sampleOnce(deps, request);
  if (!request.agents) return outcome;
  return { ...outcome, agents: await countAgents(deps.database.db, request.fence.turn) };
}

async function sampleOnce(deps: Deps, request: SampleRequest): Promise<SampleOutcome> {
  const { db } = deps.database;
  await enterRun(db, request.fence, knownRuns, confirmRun(deps));
  const owner = await ownerOf(db, request.fence.turn);
  const plan = await planSample(deps, owner, request, triesOf(request));
  const attempt = newId('att');
  const opened = await openSample(db, {
    ...attemptOf(plan, request, attempt),
    request: plan.refusal ? null : billOf(plan),
    base: request.head,
    links: plan.links,
    joined: plan.joined,
    events: openingEvents(plan, request, attempt),
  });
  if (opened.kind === 'answered') return opened.outcome;
  if (opened.kind === 'too_many_lost') return { kind: 'attempts_lost', head: plan.head, attempts: opened.lost };
  deps.chains.add(plan.links);
  deps.notifier.moved(owner.stream);
  const { plan: planning, lostUsage } = opened;
  if (plan.refusal?.kind === 'cut') {
    const outcome = { ...plan.refusal, usage: lostUsage };
    return await claimSample(db, { fence: request.fence, sample: plan.key, step: request.step, outcome });
  }
  if (plan.refusal) return plan.refusal;
  return await beating(attempt, () => ask({ deps, request, plan, attempt, planning, lostUsage }));
}

/** Repeated: by the engine's next attempt, by who settles what was cut, by a run that replays the past of another. */
function triesOf({ fence, purpose }: SampleRequest): 'first' | 'repeated' {
  return fence.isReset || purpose === 'settle' || Context.current().info.attempt > 1 ? 'repeated' : 'first';
}

/** A sample whose request is about to be sent. */
interface Asking {
  readonly deps: Deps;
  readonly request: SampleRequest;
  readonly plan: SamplePlan;
  readonly attempt: string;
  /** Whether the session plans, as of the first commit. */
  readonly planning: boolean;
  /** What earlier attempts of this activity spent; the turn hears of it with this one's outcome. */
  readonly lostUsage: Usage;
}

async function ask(asking: Asking): Promise<SampleOutcome> {
  const { deps, request, plan, attempt } = asking;
  const at = { stream: plan.owner.stream, turn: plan.owner.id, step: request.step, attempt };
  const deltas = new DeltaWriter(deps.database.db, deps.notifier, at);
  const result = await sendRequest(deps, plan, (channel, chunk) => deltas.add(channel, chunk));
  const shown = await deltas.flushed(plan.patience.flushWaitMs);
  const outcome = await close(asking, result, shown !== 'nothing');
  if (shown === 'late') {
    deps.log.warn(
      { turn: plan.owner.id, step: request.step },
      'streamed text is stored too slowly; its message went first',
    );
    // The commit has taken away what was there; nobody waits for the rest.
    void deltas.dropped();
  }
  return outcome;
}

async function close(asking: Asking, result: ModelResult, wasShown: boolean): Promise<SampleOutcome> {
  const { deps, request, plan, attempt, planning, lostUsage } = asking;
  const { hooks } = deps;
  const taken = plan.schema && result.kind === 'reply' ? takeAnswer(result, plan.schema) : null;
  const reply = replyLink(plan, result, taken, request.onCut);
  const calls = reply ? toCalls(deps, plan, reply, result, planning, taken) : [];
  const usage = withCost(result.usage, plan.pricing);
  const outcome = toOutcome(plan, { reply, calls, result, usage: addUsage(usage, lostUsage), hooks, taken });
  const closing = {
    ...attemptOf(plan, request, attempt),
    outcome,
    isFinal: outcome.kind === 'reply' || outcome.kind === 'cut',
    usage,
    wasShown,
    reply,
    calls: calls.map((each) => each.row),
  };
  const cause = result.kind === 'cut' ? await cutBy(deps.database.db, plan.owner.id) : null;
  const events = closingEvents(closing, request, calls, result, cause);
  const kept = await closeRequest(deps, plan, result, { ...closing, events });
  if (reply && kept === outcome) rememberReaders(deps, plan, request.step, reply.hash, calls);
  return kept;
}

function rememberReaders(
  deps: Deps,
  plan: SamplePlan,
  step: number,
  assistant: string,
  calls: readonly PlannedCall[],
): void {
  for (const { ref, row } of calls) {
    if (ref.verdict === 'run' && ref.effect === 'none') deps.calls.asked(plan.owner.id, assistant, step, row);
  }
}
