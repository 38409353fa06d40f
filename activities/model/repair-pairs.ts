import type { Message, ToolCall } from '../../workflows/core/transcript.ts';
import type { Shown } from './port.ts';

type Assistant = Extract<Message, { kind: 'assistant' }>;
type ToolResult = Extract<Message, { kind: 'tool_result' }>;

export const NO_RESULT_TEXT =
  'No result was recorded for this call. It may or may not have run: check before you repeat it.';

/**
 * The same transcript with exactly one result right behind each call, in call order. Results without a
 * call are dropped, missing ones are made up; an unanswered call of a cut message never ran and is dropped.
 */
export function repairPairs(messages: readonly Shown[]): Shown[] {
  const repaired: Shown[] = [];
  for (const [n, message] of messages.entries()) {
    if (message.kind === 'tool_result') continue;
    if (message.kind !== 'assistant') repaired.push(message);
    else if (message.calls.length === 0) repaired.push(message);
    else repaired.push(...withResults(message, resultsAfter(messages, n)));
  }
  return repaired;
}

/** Results up to the next assistant message: none of them can belong to another one. */
function resultsAfter(messages: readonly Shown[], n: number): ToolResult[] {
  const results: ToolResult[] = [];
  for (let at = n + 1; at < messages.length; at += 1) {
    const message = messages[at];
    if (message?.kind === 'assistant') break;
    if (message?.kind === 'tool_result') results.push(message);
  }
  return results;
}

function withResults(assistant: Assistant, results: readonly ToolResult[]): Shown[] {
  const answered = assistant.calls.map((call, ordinal) => ({
    call,
    ordinal,
    result: results.find((candidate) => candidate.ordinal === ordinal),
  }));
  const kept = assistant.cut ? answered.filter(({ result }) => result !== undefined) : answered;
  const isWhole = kept.length === assistant.calls.length;
  const head = isWhole ? assistant : withoutCalls(assistant, kept);
  return [
    head,
    ...kept.map(({ call, result }, ordinal) => (result ? numbered(result, ordinal) : syntheticResult(call, ordinal))),
  ];
}

/** The same object where nothing changes: what was worked out for it still holds. */
function numbered(result: ToolResult, ordinal: number): ToolResult {
  return result.ordinal === ordinal ? result : { ...result, ordinal };
}

/** Fields of calls are kept by ordinal in `extra`, so they go with the ordinals. */
function withoutCalls(assistant: Assistant, kept: readonly { readonly call: ToolCall }[]): Assistant {
  const { tool_calls: _byOrdinal, ...extra } = assistant.extra;
  return { ...assistant, calls: kept.map(({ call }) => call), extra };
}

function syntheticResult(call: ToolCall, ordinal: number): ToolResult {
  return {
    kind: 'tool_result',
    ordinal,
    callId: call.id,
    tool: call.name,
    text: NO_RESULT_TEXT,
    isError: true,
    blob: null,
  };
}
