import { NO_TOKENS } from '../../workflows/core/sample-outcome.ts';
import type { Dialect, Draft } from './dialect.ts';
import { Exchange } from './exchange.ts';
import type { SchemaRules } from './lower-schema.ts';
import { OutputWatch } from './output-watch.ts';
import type { ModelListener, ModelPort, ModelRequest, ModelResult } from './port.ts';
import { noteOf } from './redact.ts';

/** What becomes of reasoning that may have to go back to the model that made it: providers differ, and change their minds. */
export type ReasoningReturn = 'send' | 'send_in_current_turn' | 'drop';

export interface WireOptions {
  /** With its version, such as `https://host/v1`. */
  readonly baseUrl: string;
  /** Read again for each request, so a key that was changed at its source is used at once. */
  readonly apiKey: () => string | undefined;
  readonly fetch?: typeof fetch;
  /** ms since the epoch. */
  readonly now?: () => number;
  /** Which JSON Schema the provider takes; `openai` if left out. */
  readonly schemas?: SchemaRules;
  /** Default `send`. */
  readonly reasoning?: ReasoningReturn;
}

/** A port over HTTP. Throws only what the listener throws. */
export function createWirePort<D extends Draft>(
  options: WireOptions,
  speak: (request: ModelRequest) => Dialect<D>,
): ModelPort {
  return { sample: (request, listener) => sampleOnce(options, speak, request, listener) };
}

async function sampleOnce<D extends Draft>(
  options: WireOptions,
  speak: (request: ModelRequest) => Dialect<D>,
  request: ModelRequest,
  listener: ModelListener,
): Promise<ModelResult> {
  if (listener.signal.aborted) {
    return { kind: 'cut', usage: NO_TOKENS, text: '', reasoning: '', calls: [], extra: {} };
  }
  const apiKey = readKey(options.apiKey);
  if (!apiKey) {
    return { kind: 'auth', status: 401, usage: NO_TOKENS, note: noteOf({ kind: 'auth' }, 'no API key is set') };
  }
  const wire = {
    baseUrl: options.baseUrl,
    apiKey,
    fetch: options.fetch ?? fetch,
    now: options.now ?? Date.now,
    clocks: request.clocks,
  };
  const exchange = new Exchange(wire, speak(request), new OutputWatch(request), listener);
  try {
    return await exchange.run(request.idempotencyKey);
  } finally {
    exchange.release();
  }
}

/** A source that fails has no key; why is not told, it may name the secret. */
function readKey(source: () => string | undefined): string | null {
  try {
    return source()?.trim() || null;
  } catch {
    return null;
  }
}
