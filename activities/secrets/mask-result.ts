import { ANSWER_TOOL } from '../../workflows/core/ending-checks/structured-output.ts';
import type { ModelListener, ModelPort, ModelRequest, ModelResult } from '../model/port.ts';
import type { Masker } from './mask.ts';

/**
 * What a model says, without secrets: while it streams, and whole. Arguments of calls stay as they are, since they are
 * what runs: a mask in them would be written into files. An answer that is handed in by a call is said, not run.
 */
export async function sampleMasked(
  port: ModelPort,
  masker: Masker,
  request: ModelRequest,
  listener: ModelListener,
): Promise<ModelResult> {
  const streams = { text: masker.textStream(), reasoning: masker.textStream() };
  const result = await port.sample(request, {
    signal: listener.signal,
    onDelta(channel, chunk) {
      const shown = streams[channel].write(chunk);
      if (shown !== '') listener.onDelta(channel, shown);
    },
  });
  if ('note' in result) return { ...result, note: masker.text(result.note) };
  const { text, reasoning, calls, extra } = result;
  return {
    ...result,
    text: masker.text(text),
    reasoning: masker.text(reasoning),
    calls: calls.map((call) =>
      call.name === ANSWER_TOOL ? { ...call, arguments: masker.text(call.arguments) } : call,
    ),
    extra: maskedFields(masker, extra),
  };
}

function maskedFields(masker: Masker, extra: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(extra).map(([name, value]) => [name, maskedDeep(masker, value)]));
}

/** Texts at any depth; sealed ones have nothing in them that could be found. */
function maskedDeep(masker: Masker, value: unknown): unknown {
  if (typeof value === 'string') return masker.text(value);
  if (Array.isArray(value)) return value.map((each) => maskedDeep(masker, each));
  return typeof value === 'object' && value !== null ? maskedFields(masker, value as Record<string, unknown>) : value;
}
