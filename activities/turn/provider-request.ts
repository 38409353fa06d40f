import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { Deps } from '../deps.ts';
import { isCancelRequested } from '../heartbeat.ts';
import type { ModelListener, ModelRequest, ModelResult } from '../model/port.ts';
import { sampleMasked } from '../secrets/mask-result.ts';
import type { Fence } from '../store/fence.ts';
import type { TurnOwner } from '../store/owners.ts';
import { closeSample, type SampleClosing } from '../store/samples.ts';
import { insist } from './insist.ts';
import type { Pricing } from './pricing.ts';

/** One request to a provider, whatever it is for. */
export interface ProviderRequest {
  readonly owner: TurnOwner;
  /** The commit key that all attempts of these bytes share. */
  readonly key: string;
  readonly request: ModelRequest;
  readonly pricing: Pricing;
}

/** Which attempt of it commits, for both commits. */
export function attemptOf(
  { owner, key }: ProviderRequest,
  { fence, step }: { readonly fence: Fence; readonly step: number },
  attempt: string,
) {
  return { fence, session: owner.session, sample: key, attempt, step };
}

/** What it may cost at most, for its open usage row. */
export function billOf({ request, pricing }: ProviderRequest) {
  return { model: request.model, outputCapTokens: request.outputTokens, worstMicroUsd: pricing.worstMicroUsd };
}

/** Sends it; what comes is masked. Throws for retry where it was cut by this worker's end and not by a cancel. */
export async function sendRequest(
  deps: Deps,
  { request }: ProviderRequest,
  onDelta: ModelListener['onDelta'],
): Promise<ModelResult> {
  const context = Context.current();
  const result = await sampleMasked(deps.model(request.provider), deps.masker, request, {
    signal: context.cancellationSignal,
    onDelta,
  });
  if (result.kind === 'cut' && !isCancelRequested(context)) {
    throw ApplicationFailure.retryable('This worker is going away; the model is asked again.', 'attempt.given_up');
  }
  return result;
}

/** Its second commit: what came, what it cost, how its stream ended. Returns what stands under its key. */
export async function closeRequest<O extends { readonly kind: string }>(
  deps: Deps,
  { owner }: ProviderRequest,
  result: ModelResult,
  closing: SampleClosing<O>,
): Promise<O> {
  if ('note' in result)
    deps.log.info({ turn: owner.id, step: closing.step, outcome: result.kind, note: result.note }, 'no reply');
  const kept = await insist(() => closeSample<O>(deps.database.db, closing));
  if (closing.reply) deps.chains.add([closing.reply]);
  deps.notifier.moved(owner.stream);
  return kept;
}
