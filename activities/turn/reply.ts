import { Context } from '@temporalio/activity';
import { ANSWER_TOOL } from '../../workflows/core/ending-checks/structured-output.ts';
import type { SampleRequest } from '../../workflows/core/requests.ts';
import type { SampleOutcome, TokenUsage, Usage } from '../../workflows/core/sample-outcome.ts';
import type { CallRef } from '../../workflows/core/tools.ts';
import type { Message, ToolCall } from '../../workflows/core/transcript.ts';
import { isAnswerCall, NOT_ALONE, type TakenAnswer } from '../answer/take-answer.ts';
import type { Deps } from '../deps.ts';
import { estimateMessage } from '../model/estimate.ts';
import type { ModelReply, ModelResult } from '../model/port.ts';
import type { CutBy } from '../store/cut-by.ts';
import type { NewEvent } from '../store/events.ts';
import { needsGate } from '../gate/judge.ts';
import { effectKey, sha256 } from '../store/hash.ts';
import type { SampleClosing } from '../store/samples.ts';
import { attemptDiscarded, streamEnded } from '../store/stream-ended.ts';
import type { NewCall } from '../store/turn-commit.ts';
import { chainOn, type Link } from '../store/transcript.ts';
import type { Tool } from '../tools/define-tool.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { answeredRef, refOf } from './call-ref.ts';
import { planOf } from './guards.ts';
import type { SamplePlan } from './plan-sample.ts';

/** The assistant message as a link, or nothing where the model said nothing that is worth keeping. */
export function replyLink(
  plan: SamplePlan,
  result: ModelResult,
  taken: TakenAnswer | null,
  onCut: 'drop' | 'keep',
): Link | null {
  if (result.kind !== 'reply' && result.kind !== 'cut') return null;
  if (result.kind === 'reply' && isDropped(result, taken, onCut)) return null;
  const body = assistantMessage(plan, result, result.kind === 'cut');
  if (body.kind !== 'assistant' || isEmpty(body)) return null;
  return chainOn({ hash: plan.head, depth: plan.depth }, [body], estimateMessage)[0] ?? null;
}

/** Half a text that is asked for again, and half a JSON text in any case, is not kept. */
function isDropped(
  result: ModelResult & { kind: 'reply' },
  taken: TakenAnswer | null,
  onCut: 'drop' | 'keep',
): boolean {
  if (result.finish !== 'length' || taken?.verdict === 'valid') return false;
  return taken?.verdict === 'cut' || (onCut === 'drop' && result.calls.length === 0);
}

function assistantMessage(plan: SamplePlan, reply: ModelReply & { readonly usage: TokenUsage }, cut: boolean): Message {
  return {
    kind: 'assistant',
    text: reply.text,
    reasoning: reply.reasoning,
    // Calls of a cut stream never run, so they are not kept.
    calls: cut ? [] : reply.calls,
    provider: plan.request.provider,
    model: plan.request.model,
    extra: reply.extra,
    cut,
    ...measured(reply, reply.usage),
  };
}

/** The provider's count of what the next request has of this one: reasoning only where it goes back. */
function measured(reply: ModelReply, usage: TokenUsage): { measuredTokens?: number } {
  if (!usage.complete) return {};
  const reasoning = Object.keys(reply.extra).length > 0 ? 0 : usage.reasoningTokens;
  return { measuredTokens: usage.inputTokens + usage.outputTokens - reasoning };
}

function isEmpty(body: Message & { kind: 'assistant' }): boolean {
  return body.text.trim() === '' && body.calls.length === 0;
}

export interface PlannedCall {
  readonly ref: CallRef;
  readonly row: NewCall;
}

/** Judges each call: known tool, valid arguments, whole, free to run. What can't run is answered at once. */
export function toCalls(
  deps: Deps,
  plan: SamplePlan,
  reply: Link,
  result: ModelResult,
  planning: boolean,
  taken: TakenAnswer | null,
): PlannedCall[] {
  if (result.kind !== 'reply') return [];
  const cutAt = result.finish === 'length' ? result.calls.length - 1 : -1;
  return result.calls.map((each, ordinal) => {
    const planned = planCall(deps, plan, each, ordinal, {
      isCut: ordinal === cutAt,
      planning,
      answer: taken?.answers[ordinal] ?? null,
    });
    return { ref: planned.ref, row: { ...planned.row, key: effectKey(reply.hash, ordinal) } };
  });
}

interface Circumstances {
  readonly isCut: boolean;
  readonly planning: boolean;
  /** For a call that hands in the answer, and is not run. */
  readonly answer: NewCall['answer'];
}

function planCall(
  deps: Deps,
  { owner, tools, permissions, schema }: SamplePlan,
  asked: ToolCall,
  ordinal: number,
  { isCut, planning, answer: taken }: Circumstances,
): { readonly ref: CallRef; readonly row: Omit<NewCall, 'key'> } {
  const isAnswer = schema !== null && isAnswerCall(asked);
  const names = tools.map((tool) => tool.name);
  const found = deps.tools.lookup(asked.name, names);
  const parsed = found.ok ? parseArguments(found.tool, asked.arguments) : found;
  const row = { ordinal, providerCallId: asked.id, tool: asked.name, arguments: asked.arguments };
  if (isAnswer) {
    const ref = { ...answeredRef(ordinal, null, sha256(asked.arguments)), tool: ANSWER_TOOL };
    return { ref, row: { ...row, effect: ref.effect, argumentsHash: ref.argsHash, answer: taken ?? NOT_ALONE } };
  }
  if (isCut || !found.ok || !('args' in parsed)) {
    const ref = answeredRef(ordinal, found.ok ? found.tool : null, sha256(asked.arguments));
    const note = found.ok ? 'bad_arguments' : 'unknown_tool';
    const answer = isCut || !('text' in parsed) ? CUT_OFF : { status: 'error' as const, text: parsed.text, note };
    return { ref, row: { ...row, effect: ref.effect, argumentsHash: ref.argsHash, answer } };
  }
  const guarded = needsGate(found.tool, { plan: planOf(planning), hooks: deps.hooks, permissions });
  const checked = refOf(owner, found.tool, ordinal, parsed, guarded ? 'gate' : 'run');
  const ref =
    !guarded && isQuickHere(found.tool, owner.workspaceQueue) ? { ...checked, quick: true as const } : checked;
  return { ref, row: { ...row, effect: ref.effect, argumentsHash: ref.argsHash, answer: null } };
}

/** A sample runs where its turn is decided; only there may a quick reader be called beside the decision. */
function isQuickHere({ quick, effect }: Tool, workspaceQueue: string): boolean {
  return quick === true && effect === 'none' && workspaceQueue === Context.current().info.taskQueue;
}

const CUT_OFF = {
  status: 'error',
  text: 'The call was cut off by the output limit and did not run. Make it again, in smaller pieces.',
  note: 'cut',
} as const;

/** The outcome for the core; its head is the reply where there is one. */
export function toOutcome(
  plan: SamplePlan,
  got: {
    readonly reply: Link | null;
    readonly calls: readonly PlannedCall[];
    readonly result: ModelResult;
    readonly usage: Usage;
    readonly hooks: Pick<Deps['hooks'], 'has'>;
    readonly taken: TakenAnswer | null;
  },
): SampleOutcome {
  const { reply, calls, result, usage, hooks, taken } = got;
  const head = reply?.hash ?? plan.head;
  switch (result.kind) {
    case 'reply':
      return {
        kind: 'reply',
        head,
        finish: result.finish,
        empty: result.text.trim() === '' && result.calls.length === 0,
        calls: taken ? [] : calls.map((each) => each.ref),
        usage,
        ...((taken || calls.length === 0) && hooks.has('StopGate') ? { stopGate: true } : {}),
        ...(taken ? { structured: { verdict: taken.verdict, results: reply ? calls.length : 0 } } : {}),
        ...(plan.openTodos !== null && result.calls.length === 0 ? { openTodos: plan.openTodos } : {}),
      };
    case 'cut':
      return { kind: 'cut', head, usage };
    default: {
      // The note may quote the provider; it stays out of the history.
      const { note: _note, ...failure } = result;
      return { ...failure, usage, head };
    }
  }
}

/** What the second commit tells: the stream's end and the calls that were asked for. */
export function closingEvents(
  closing: Omit<SampleClosing, 'events'>,
  request: SampleRequest,
  calls: readonly PlannedCall[],
  result: ModelResult,
  cause: CutBy | null,
): NewEvent[] {
  const message = closing.reply?.hash ?? null;
  const isTakenBack = message === null && (closing.wasShown || result.kind === 'doom_loop');
  return [
    endOfStream(closing, result, message, cause),
    ...(isTakenBack ? [attemptDiscarded(closing)] : []),
    ...calls.map(
      ({ row }): NewEvent => ({
        key: `requested/${row.key}`,
        turn: request.fence.turn,
        event: {
          kind: 'call.requested',
          layer: 'batch',
          ordinal: row.ordinal,
          tool: row.tool,
          effect: row.effect,
          key: row.key,
        },
      }),
    ),
  ];
}

/** How a stream ended, in the journal's words. */
export function endOfStream(
  closing: Pick<SampleClosing, 'attempt' | 'step' | 'usage' | 'fence'>,
  result: ModelResult,
  message: string | null,
  cause: CutBy | null = null,
): NewEvent {
  switch (result.kind) {
    case 'reply':
      return streamEnded(
        closing,
        result.calls.length > 0 && result.finish === 'stop' ? 'tool_calls' : result.finish,
        null,
        message,
      );
    case 'cut':
      return streamEnded(closing, cause ?? { kind: 'cancel', decidedBy: 'user' }, null, message);
    case 'stalled':
      return streamEnded(closing, 'stalled', result.kind, null, result.note);
    case 'doom_loop':
      return streamEnded(closing, 'discarded', result.kind, null, result.note);
    default:
      return streamEnded(closing, 'error', result.kind, null, result.note);
  }
}
