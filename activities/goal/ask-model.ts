import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { GoalUsage, JudgeVerdict } from '../../workflows/core/goal/goal-event.ts';
import type { RequestLimits } from '../../workflows/core/goal/goal-limits.ts';
import { patienceOf, POLICY } from '../../workflows/core/policy.ts';
import type { Usage } from '../../workflows/core/sample-outcome.ts';
import { chargedMicroUsd, chargedTokens } from '../../workflows/core/usage.ts';
import { judgeAnswer } from '../answer/judge-answer.ts';
import type { Deps } from '../deps.ts';
import { nativeFormat } from '../model/native-format.ts';
import { estimateMessage, estimateText } from '../model/estimate.ts';
import type { ModelRequest, Shown } from '../model/port.ts';
import { agentOf } from '../store/definitions.ts';
import { closeJudging, openJudging } from '../store/goal-verdicts.ts';
import type { GoalPlace } from '../store/goals.ts';
import { sha256 } from '../store/hash.ts';
import { newId } from '../store/ids.ts';
import type { OutputSchema, StoredAgent } from '../store/schema.ts';
import { usageOfSample } from '../store/usage.ts';
import { insist } from '../turn/insist.ts';
import { pricingOf, withCost } from '../turn/pricing.ts';

export interface Question {
  /** Names this try for ever. */
  readonly key: string;
  readonly turn: string;
  readonly instructions: string;
  readonly material: string;
  readonly schema: OutputSchema;
  /** What the request may cost at most. */
  readonly left: RequestLimits;
}

export type Answer =
  | {
      readonly kind: 'asked';
      /** Null: no answer that fits. */
      readonly value: Readonly<Record<string, unknown>> | null;
      readonly usage: GoalUsage;
    }
  /** It was not sent. */
  | Extract<JudgeVerdict, { readonly kind: 'unaffordable' }>;

/** One request without tools to who judges the goal. What it costs is in the usage rows of the turn that is judged. */
export async function askModel(deps: Deps, place: GoalPlace, question: Question): Promise<Answer> {
  const { db } = deps.database;
  const context = Context.current();
  const agent = { ...(await agentOf(db, place.agent)), ...place.row.judge };
  const request = requestOf(deps, agent, question);
  const inputTokens = request.messages.reduce(
    (sum, each) => sum + estimateMessage(each),
    estimateText(request.instructions),
  );
  const worstTokens = inputTokens + request.outputTokens;
  const pricing = pricingOf(agent, { inputTokens, outputTokens: request.outputTokens });
  const tooDear = overdrawn(question.left, await usageOfSample(db, question.key), { worstTokens, ...pricing });
  if (tooDear) return tooDear;
  const attempt = newId('att');
  await openJudging(db, {
    attempt,
    sample: question.key,
    session: place.row.session,
    turn: question.turn,
    model: agent.model,
    outputCapTokens: request.outputTokens,
    worstMicroUsd: pricing.worstMicroUsd,
  });
  const result = await deps
    .model(agent.provider)
    .sample(request, { signal: context.cancellationSignal, onDelta: () => {} });
  const judged = result.kind === 'reply' ? judgeAnswer(result.text, question.schema) : null;
  const own = withCost(result.usage, pricing);
  await insist(() => closeJudging(db, { attempt, outcome: result.kind, used: own, wasted: !judged?.ok }));
  if (result.kind === 'cut')
    throw ApplicationFailure.retryable('This worker is going away; the judge is asked again.', 'attempt.given_up');
  if ('note' in result) deps.log.info({ goal: place.row.id, outcome: result.kind, note: result.note }, 'no verdict');
  // This is asked for once a verdict that is kept, so it holds what no verdict came of.
  const used = await usageOfSample(db, question.key);
  const usage = { tokens: chargedTokens(used), microUsd: chargedMicroUsd(used) };
  return { kind: 'asked', value: judged?.ok ? (judged.value as Record<string, unknown>) : null, usage };
}

/** The worst case has to fit into what is left, beside what lost attempts of the same request may have cost. */
function overdrawn(
  { maxTokens, maxMicroUsd }: RequestLimits,
  before: Usage,
  { worstTokens, worstMicroUsd }: { readonly worstTokens: number; readonly worstMicroUsd: number | null },
): Extract<Answer, { readonly kind: 'unaffordable' }> | null {
  const tokens = worstTokens + chargedTokens(before);
  if (tokens > maxTokens) return { kind: 'unaffordable', limit: 'tokens', needed: tokens };
  const microUsd = (worstMicroUsd ?? 0) + chargedMicroUsd(before);
  if (maxMicroUsd === null || microUsd <= maxMicroUsd) return null;
  return { kind: 'unaffordable', limit: 'usd', needed: microUsd };
}

function requestOf(deps: Deps, agent: StoredAgent, question: Question): ModelRequest {
  const rules = deps.nativeAnswers(agent.provider);
  const answer = { name: 'verdict', schema: question.schema };
  const message: Shown = { kind: 'projection', text: question.material };
  return {
    provider: agent.provider,
    model: agent.model,
    instructions: question.instructions,
    messages: [message],
    tools: [],
    clocks: patienceOf(agent),
    outputTokens: POLICY.goal.judge.outputTokens,
    ...(rules !== null && nativeFormat(answer, rules) ? { answer } : {}),
    watchRepetition: true,
    // What is judged may read otherwise at the next attempt: other bytes are another request.
    idempotencyKey: sha256('http', question.key, question.material).slice(0, 40),
  };
}
