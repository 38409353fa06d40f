import type { SampleRequest } from '../../workflows/core/requests.ts';
import type { SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { Message } from '../../workflows/core/transcript.ts';
import { buildContext } from '../context/build.ts';
import { REMINDER_TEXTS } from '../context/reminders.ts';
import type { Deps } from '../deps.ts';
import { DEFAULT_PERMISSIONS, type Permissions } from '../gate/permissions.ts';
import { estimateMessage } from '../model/estimate.ts';
import type { ModelRequest } from '../model/port.ts';
import { agentOf, toolsOf } from '../store/definitions.ts';
import type { NewEvent } from '../store/events.ts';
import { sha256 } from '../store/hash.ts';
import type { TurnOwner } from '../store/owners.ts';
import { readInputs } from '../store/inputs.ts';
import { readResults } from '../store/samples.ts';
import type { StoredTool } from '../store/schema.ts';
import { ancestorsAmong, chainOn, type Link, loadChain } from '../store/transcript.ts';
import { readOutput } from '../tools/read-output.ts';
import { batchEnded } from './batch-end.ts';
import { inputText } from './input-text.ts';
import { type Pricing, pricingOf } from './pricing.ts';
import { resultMessages } from './results.ts';

/** Everything about a sample that is decided before a byte is sent. */
export interface SamplePlan {
  readonly owner: TurnOwner;
  /** The sample's commit key, shared by all attempts of these bytes. */
  readonly key: string;
  readonly head: string;
  readonly depth: number;
  readonly links: readonly Link[];
  /** The batch that is over now; null where there was none. */
  readonly batchEnd: NewEvent | null;
  readonly joined: readonly { readonly input: string; readonly message: string }[];
  readonly provider: string;
  readonly tools: readonly StoredTool[];
  readonly permissions: Permissions;
  readonly request: ModelRequest;
  readonly pricing: Pricing;
  /** Set where no request is made: the context does not fit. */
  readonly refusal: SampleOutcome | null;
}

export async function planSample(deps: Deps, owner: TurnOwner, request: SampleRequest): Promise<SamplePlan> {
  const { db } = deps.database;
  const [agent, tools, chain] = await Promise.all([
    agentOf(db, request.agent),
    toolsOf(db, request.tools),
    loadChain(db, deps.chains, request.head),
  ]);
  const results = request.results > 0 ? await resultsOf(deps, request) : [];
  const bodies = await owedMessages(deps, { request, chain, tools, results });
  const depth = chain[chain.length - 1]?.depth ?? 0;
  const links = chainOn({ hash: request.head, depth }, bodies, estimateMessage);
  const head = links[links.length - 1]?.hash ?? request.head;
  const built = buildContext([...chain, ...links], {
    agent,
    tools,
    contextTokens: request.contextTokens,
    mayCompact: request.mayCompact && agent.compaction !== false,
  });
  const key = sha256(
    'sample',
    owner.id,
    String(request.step),
    String(request.resample),
    head,
    request.tools,
    request.agent,
    String(request.outputTokens),
  );
  const { outputTokens } = request;
  return {
    owner,
    key,
    head,
    depth: depth + links.length,
    links,
    batchEnd: results.length > 0 ? batchEnded({ turn: owner.id, assistant: request.head }, results, null) : null,
    joined: links.flatMap(({ body, hash }) => (body.kind === 'user' ? [{ input: body.input, message: hash }] : [])),
    provider: agent.provider,
    tools,
    permissions: agent.permissions ?? DEFAULT_PERMISSIONS,
    request: {
      model: agent.model,
      instructions: agent.instructions,
      messages: built.messages,
      tools,
      outputTokens,
      watchRepetition: request.watchRepetition,
      idempotencyKey: sha256('http', key).slice(0, 40),
    },
    pricing: pricingOf(agent, { inputTokens: built.estimateTokens, outputTokens }),
    refusal: built.fits ? null : { kind: built.misfit, head, estimateTokens: built.estimateTokens },
  };
}

interface Owed {
  readonly request: SampleRequest;
  readonly chain: readonly Link[];
  readonly tools: readonly StoredTool[];
  readonly results: Awaited<ReturnType<typeof resultsOf>>;
}

/** In this order: results of the last calls, inputs that wait for this turn, reminders that are due. */
async function owedMessages(deps: Deps, { request, chain, tools, results }: Owed): Promise<Message[]> {
  const inputs = await readInputs(deps.database.db, request.inputs);
  const present = await inputsOnChain(deps, request.head, inputs, chain);
  return [
    ...resultMessages(
      results,
      tools.some(({ name }) => name === readOutput.name),
    ),
    ...inputs
      .filter((row) => !present.has(row.id))
      .map((row): Message => ({ kind: 'user', text: inputText(row), input: row.id, source: row.kind })),
    ...request.reminders.map((code): Message => ({ kind: 'reminder', code, text: REMINDER_TEXTS[code] })),
  ];
}

/** Those that are messages already: told of twice, an input joins once, also behind a compaction. */
async function inputsOnChain(
  deps: Deps,
  head: string,
  inputs: readonly { readonly id: string; readonly message: string | null }[],
  chain: readonly Link[],
): Promise<ReadonlySet<string>> {
  const seen = new Set(chain.flatMap(({ body }) => (body.kind === 'user' ? [body.input] : [])));
  const old = inputs.filter(({ id, message }) => message !== null && !seen.has(id));
  const onChain = await ancestorsAmong(
    deps.database.db,
    head,
    old.flatMap(({ message }) => message ?? []),
  );
  for (const { id, message } of old) if (message !== null && onChain.has(message)) seen.add(id);
  return seen;
}

async function resultsOf({ database, calls }: Deps, { head, results }: SampleRequest) {
  const own = calls.results(head, results);
  return own ? own.map((row) => ({ ...row, begun: false, undo: null })) : await readResults(database.db, head);
}

/** What the first commit tells: the batch that is over, inputs that joined, the sample that begins. */
export function openingEvents(plan: SamplePlan, request: SampleRequest, attempt: string): NewEvent[] {
  const turn = plan.owner.id;
  return [
    ...(plan.batchEnd ? [plan.batchEnd] : []),
    ...plan.joined.map(
      ({ input, message }): NewEvent => ({
        key: `joined/${message}`,
        turn,
        event: { kind: 'input.joined', layer: 'turn', input, message },
      }),
    ),
    // What is not sent has no stream, and so no end of one.
    ...(plan.refusal ? [] : [sampleStarted(plan, request, attempt)]),
  ];
}

function sampleStarted(plan: SamplePlan, request: SampleRequest, attempt: string): NewEvent {
  return {
    key: `sample/${attempt}`,
    turn: plan.owner.id,
    event: {
      kind: 'sample.started',
      layer: 'stream',
      step: request.step,
      attempt,
      transition: request.transition,
      model: plan.request.model,
    },
  };
}
