import { type Patience, patienceOf } from '../../workflows/core/policy.ts';
import type { SampleRequest } from '../../workflows/core/requests.ts';
import { NO_USAGE, type SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { Message } from '../../workflows/core/transcript.ts';
import { buildContext } from '../context/build.ts';
import { ANSWER_INSTRUCTION, withAnswerTool } from '../answer/answer-tool.ts';
import { openTodos } from '../context/open-todos.ts';
import type { Deps } from '../deps.ts';
import { DEFAULT_PERMISSIONS, type Permissions } from '../gate/permissions.ts';
import { estimateMessage } from '../model/estimate.ts';
import { nativeFormat } from '../model/native-format.ts';
import type { AnswerFormat, ModelRequest } from '../model/port.ts';
import { agentOf, playedBy, schemaOf, toolsOf } from '../store/definitions.ts';
import type { NewEvent } from '../store/events.ts';
import { sha256 } from '../store/hash.ts';
import type { TurnOwner } from '../store/owners.ts';
import { readInputs } from '../store/inputs.ts';
import { readResults } from '../store/samples.ts';
import { runningAgents } from '../store/sub-agents.ts';
import type { OutputSchema, StoredAgent, StoredTool } from '../store/schema.ts';
import { ancestorsAmong, chainOn, type Link, loadOwnChain } from '../store/transcript.ts';
import { readOutput } from '../tools/read-output.ts';
import { batchEnded } from './batch-end.ts';
import { dueReminders } from './due-reminders.ts';
import { inputMessage } from './input-text.ts';
import { openedBefore } from './opened-before.ts';
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
  readonly tools: readonly StoredTool[];
  readonly permissions: Permissions;
  /** What the answer has to fit; null where it is not asked for one. */
  readonly schema: OutputSchema | null;
  /** Unfinished todos, where the agent wants to hear of them before an end. */
  readonly openTodos: number | null;
  /** The model that was left. */
  readonly switchedFrom: string | null;
  readonly request: ModelRequest;
  readonly pricing: Pricing;
  readonly patience: Patience;
  /** Set where no request is made: the context does not fit, or what was cut is only to be settled. */
  readonly refusal: SampleOutcome | null;
}

/** `tries`: of a repeated one, what an earlier try has committed already stands. */
export async function planSample(
  deps: Deps,
  owner: TurnOwner,
  request: SampleRequest,
  tries: 'first' | 'repeated',
): Promise<SamplePlan> {
  const { db } = deps.database;
  const [agent, tools, chain, pinned] = await Promise.all([
    agentOf(db, request.agent),
    toolsOf(db, request.tools),
    loadOwnChain(db, deps.chains, owner, request.head),
    owner.outputSchema === null ? null : schemaOf(db, owner.outputSchema),
  ]);
  const results = request.results > 0 ? await resultsOf(deps, request, chain) : [];
  // What is in progress may be theirs.
  const backing = agent.todoGate && agent.agents ? await runningAgents(db, owner.session) : 0;
  const bodies = await owedMessages(deps, request, { agent, chain, tools, schema: pinned, results, backing });
  const depth = chain[chain.length - 1]?.depth ?? 0;
  const on = { hash: request.head, depth };
  const before = tries === 'repeated' ? await openedBefore(db, owner.id, on, bodies) : null;
  const links = before ?? chainOn(on, bodies, estimateMessage);
  const head = links[links.length - 1]?.hash ?? request.head;
  const shown = shownOf(deps, agent, request, { tools, schema: request.schema === 'asked' ? pinned : null });
  const built = buildContext([...chain, ...links], {
    ...shown,
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
  const patience = patienceOf(agent);
  const outputTokens = capWithin(request, agent, built.estimateTokens);
  return {
    owner,
    key,
    head,
    depth: depth + links.length,
    links,
    batchEnd: batchEnded({ turn: owner.id, assistant: results[0]?.assistant ?? request.head }, results, null),
    schema: shown.schema,
    openTodos: agent.todoGate
      ? openTodos(
          [...chain, ...links].map(({ body }) => body),
          backing,
        ).length
      : null,
    switchedFrom: request.transition === 'model_switched' ? agent.model : null,
    joined: links.flatMap(({ body, hash }) => (body.kind === 'user' ? [{ input: body.input, message: hash }] : [])),
    tools,
    permissions: agent.permissions ?? DEFAULT_PERMISSIONS,
    request: {
      provider: shown.agent.provider,
      model: shown.agent.model,
      instructions: shown.agent.instructions,
      messages: built.messages,
      tools: shown.tools,
      outputTokens,
      ...(shown.answer ? { answer: shown.answer } : {}),
      clocks: patience,
      watchRepetition: request.watchRepetition,
      idempotencyKey: sha256('http', key).slice(0, 40),
    },
    patience,
    pricing: pricingOf(shown.agent, { inputTokens: built.estimateTokens, outputTokens }),
    refusal: refusalOf(request, head, built),
  };
}

function refusalOf(
  { purpose }: SampleRequest,
  head: string,
  built: ReturnType<typeof buildContext>,
): SampleOutcome | null {
  if (purpose === 'settle') return { kind: 'cut', head, usage: NO_USAGE };
  return built.fits ? null : { kind: built.misfit, head, estimateTokens: built.estimateTokens };
}

interface Shown {
  readonly agent: StoredAgent;
  readonly tools: readonly StoredTool[];
  readonly schema: OutputSchema | null;
  readonly answer: AnswerFormat | null;
}

/** What the model is shown: whose turn it is, and how it is asked for an answer that fits a schema. */
function shownOf(
  deps: Deps,
  pinned: StoredAgent,
  { model }: SampleRequest,
  { tools, schema }: Pick<Shown, 'tools' | 'schema'>,
): Shown {
  const agent = playedBy(pinned, model);
  if (schema === null) return { agent, tools, schema, answer: null };
  const answer = { name: 'answer', schema };
  const rules = deps.nativeAnswers(agent.provider);
  if (rules !== null && nativeFormat(answer, rules)) return { agent, tools, schema, answer };
  const instructions = [agent.instructions, ANSWER_INSTRUCTION].filter((text) => text !== '').join('\n\n');
  return { agent: { ...agent, instructions }, tools: withAnswerTool(tools, schema), schema, answer: null };
}

/** A raised cap is no more than what the window has left; the usual one is the agent's own business. */
function capWithin({ outputTokens, contextTokens }: SampleRequest, { limits }: StoredAgent, estimate: number): number {
  return Math.max(Math.min(outputTokens, contextTokens - estimate), Math.min(outputTokens, limits.outputTokens));
}

interface Owing {
  readonly agent: StoredAgent;
  readonly chain: readonly Link[];
  readonly tools: readonly StoredTool[];
  readonly schema: OutputSchema | null;
  readonly results: Awaited<ReturnType<typeof resultsOf>>;
  readonly backing: number;
}

/** In this order: results of the last calls, inputs that wait for this turn, reminders that are due. */
async function owedMessages(
  deps: Deps,
  request: SampleRequest,
  { agent, chain, tools, schema, results, backing }: Owing,
): Promise<Message[]> {
  const { db } = deps.database;
  const inputs = await readInputs(db, request.inputs);
  const present = await inputsOnChain(deps, request.head, inputs, chain);
  return [
    ...resultMessages(
      results,
      tools.some(({ name }) => name === readOutput.name),
    ),
    ...inputs
      // The result of a call that waited for it has told it already.
      .filter((row) => !present.has(row.id) && !(row.kind === 'agent_end' && row.status === 'consumed'))
      .map(inputMessage),
    ...(await dueReminders(db, request, {
      turn: request.fence.turn,
      agent,
      schema,
      messages: chain.map(({ body }) => body),
      agents: backing,
    })),
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

/** Of the newest calls: since they were asked for, a gate may have put a message behind them. */
async function resultsOf({ database, calls }: Deps, { head, results }: SampleRequest, chain: readonly Link[]) {
  const assistant = chain.findLast(({ body }) => body.kind === 'assistant')?.hash ?? head;
  const own = calls.results(assistant, results);
  return own ? own.map((row) => ({ ...row, begun: false, undo: null })) : await readResults(database.db, assistant);
}

/** What the first commit tells: the batch that is over, inputs that joined, the sample that begins. */
export function openingEvents(plan: SamplePlan, request: SampleRequest, attempt: string): NewEvent[] {
  const turn = plan.owner.id;
  return [
    ...(plan.batchEnd ? [plan.batchEnd] : []),
    ...(plan.switchedFrom === null ? [] : [modelSwitched(turn, plan.switchedFrom, plan.request.model)]),
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

/** One switch a turn: the key says so. */
function modelSwitched(turn: string, from: string, to: string): NewEvent {
  return {
    key: `switched/${turn}`,
    turn,
    event: { kind: 'model.switched', layer: 'turn', from, to, cause: 'overloaded' },
  };
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
