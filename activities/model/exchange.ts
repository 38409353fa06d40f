import OpenAI from 'openai';
import { NO_TOKENS, type ProviderFailure, type TokenUsage } from '../../workflows/core/sample-outcome.ts';
import { classify, type Trouble } from './classify.ts';
import type { Dialect, Draft } from './dialect.ts';
import { asObject, parseJson } from './json.ts';
import type { Clocks, ModelListener, ModelResult } from './port.ts';
import { ProgressClock } from './progress-clock.ts';
import { UNKNOWN_USAGE } from './read-usage.ts';
import { noteOf } from './redact.ts';
import { DONE, readFrames, type SseFrame } from './sse.ts';
import type { OutputWatch } from './output-watch.ts';

/** Where an exchange goes, and how long it may take. */
export interface Wire {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly fetch: typeof fetch;
  /** ms since the epoch. */
  readonly now: () => number;
  readonly clocks: Clocks;
}

/** The SDK's clock is a plain timer with this ceiling; ours is the one that counts. */
const SDK_TIMEOUT_MS = 2_147_483_647;
/** How long the end of the body may take after the end marker, so that the connection can be used again. */
const LINGER_MS = 250;

/** One HTTP request and its answer. Ends in exactly one result, whatever the provider does. */
export class Exchange<D extends Draft> {
  readonly #wire: Wire;
  readonly #dialect: Dialect<D>;
  readonly #output: OutputWatch;
  readonly #listener: ModelListener;
  readonly #abort = new AbortController();
  readonly #clock: ProgressClock;
  readonly #deadline: ProgressClock;
  readonly #onCut = () => this.#abort.abort();
  #draft: D;
  #stalled: string | null = null;
  #streaming = false;
  #ended = false;
  #ownFault: { readonly error: unknown } | null = null;
  #refusal: (Trouble & { kind: 'answer' }) | null = null;

  constructor(wire: Wire, dialect: Dialect<D>, output: OutputWatch, listener: ModelListener) {
    this.#wire = wire;
    this.#dialect = dialect;
    this.#output = output;
    this.#listener = listener;
    this.#draft = dialect.empty;
    listener.signal.addEventListener('abort', this.#onCut, { once: true });
    if (listener.signal.aborted) this.#abort.abort();
    const { stallMs, totalMs } = wire.clocks;
    this.#clock = new ProgressClock(stallMs, () => this.#giveUp(`no data for ${stallMs} ms`));
    this.#deadline = new ProgressClock(totalMs, () => this.#giveUp(`not over after ${totalMs} ms`));
  }

  async run(idempotencyKey: string): Promise<ModelResult> {
    let thrown: unknown = null;
    try {
      const response = await this.#send(idempotencyKey);
      this.#streaming = true;
      const decided = await this.#read(response);
      if (decided) return decided;
      this.#ended = true;
    } catch (error) {
      thrown = error ?? new Error('nothing was thrown');
    }
    if (this.#ownFault) throw this.#ownFault.error;
    if (this.#listener.signal.aborted && !this.#draft.done) return this.#cut();
    if (this.#draft.finish === null && !this.#draft.done) {
      if (this.#stalled !== null) return this.#stall(this.#stalled);
      if (this.#refusal) return this.#failed(this.#refusal);
      if (thrown) return this.#failed({ kind: 'thrown', error: thrown, streaming: this.#streaming });
    }
    return this.#concluded(this.#draft);
  }

  release(): void {
    this.#clock.stop();
    this.#deadline.stop();
    this.#listener.signal.removeEventListener('abort', this.#onCut);
    // A body read to its end leaves its connection to the next request; any other is closed.
    if (!this.#ended) this.#abort.abort();
  }

  #giveUp(why: string): void {
    this.#stalled ??= why;
    this.#abort.abort();
  }

  async #send(idempotencyKey: string): Promise<Response> {
    const client = new OpenAI({
      apiKey: this.#wire.apiKey,
      baseURL: this.#wire.baseUrl,
      organization: null,
      project: null,
      maxRetries: 0,
      timeout: SDK_TIMEOUT_MS,
      logLevel: 'off',
      fetch: (url, init) => this.#fetch(url, init),
    });
    const headers = { 'Idempotency-Key': idempotencyKey };
    return await this.#dialect.send(client, { headers, signal: this.#abort.signal });
  }

  /** The SDK drops an error body that has no `error` in it, so it is kept here. */
  async #fetch(url: string | URL | Request, init?: RequestInit): Promise<Response> {
    const response = await this.#wire.fetch(url, init);
    if (response.ok) return response;
    const text = await response.text().catch(() => '');
    const { status, headers } = response;
    this.#refusal = { kind: 'answer', status, headers, body: parseJson(text) ?? text };
    return new Response(text, { status, headers });
  }

  /** Reads to the end of the body. @returns a result where a frame decides at once. */
  async #read(response: Response): Promise<ModelResult | null> {
    const isJson = response.headers.get('content-type')?.includes('application/json') === true;
    const frames = isJson ? wholeAnswer(response) : readFrames(response.body ?? noBytes());
    for await (const frame of frames) {
      if (this.#draft.done) continue;
      const before = this.#draft;
      const result = this.#guarded(frame);
      if (result) return result;
      if (this.#draft !== before) this.#clock.feed(this.#patienceMs());
    }
    return null;
  }

  #patienceMs(): number {
    if (this.#draft.done) return LINGER_MS;
    const { stallMs, usageWaitMs } = this.#wire.clocks;
    return this.#draft.finish === null ? stallMs : Math.min(usageWaitMs, stallMs);
  }

  /** What our own side throws is no failure of the provider. */
  #guarded(frame: SseFrame): ModelResult | null {
    try {
      return this.#take(frame);
    } catch (error) {
      this.#ownFault = { error };
      throw error;
    }
  }

  #take(frame: SseFrame): ModelResult | null {
    if (frame.data.startsWith(DONE)) {
      this.#draft = this.#dialect.marked(this.#draft);
      return null;
    }
    const value = asObject(parseJson(frame.data));
    if (frame.event === 'error') return this.#failed({ kind: 'frame', error: value?.['error'] ?? value ?? frame.data });
    if (!value) return this.#malformed();
    const step = this.#dialect.accumulate(this.#draft, value, frame.event);
    this.#draft = step.draft;
    if (step.kind === 'failed') return this.#failed({ kind: 'frame', error: step.error });
    if (step.reasoning !== '') this.#listener.onDelta('reasoning', step.reasoning);
    if (step.text !== '') this.#listener.onDelta('text', step.text);
    switch (this.#output.see(step, step.draft.drafts)) {
      case 'fine':
        return null;
      case 'loops':
        return this.#loops();
      case 'runs_away':
        return this.#concluded({ ...step.draft, finish: 'length' });
    }
  }

  #concluded(draft: D): ModelResult {
    const end = this.#dialect.conclude(draft);
    switch (end.kind) {
      case 'reply':
        return end;
      case 'cut': {
        const note = noteOf({ kind: 'transport' }, 'the stream ended without a finish reason');
        return { kind: 'transport', cause: 'cut', usage: end.usage, note };
      }
      case 'malformed':
        return this.#malformed();
      case 'failed':
        return this.#failed({ kind: 'frame', error: { message: `finish reason ${end.finish}` } });
    }
  }

  #failed(trouble: Trouble): ModelResult {
    const { failure, note } = classify(trouble, this.#wire.now(), [this.#wire.apiKey]);
    const usage = isUnpaid(trouble, failure) ? NO_TOKENS : this.#usageSoFar();
    return { ...failure, usage, note };
  }

  #malformed(): ModelResult {
    const note = noteOf({ kind: 'transport' }, 'malformed: the stream could not be read');
    return { kind: 'transport', cause: 'malformed', usage: this.#usageSoFar(), note };
  }

  #stall(why: string): ModelResult {
    return { kind: 'stalled', usage: this.#usageSoFar(), note: noteOf({ kind: 'stalled' }, why) };
  }

  #loops(): ModelResult {
    const note = noteOf({ kind: 'doom_loop' }, 'the model repeats itself');
    return { kind: 'doom_loop', usage: this.#usageSoFar(), note };
  }

  #cut(): ModelResult {
    return { kind: 'cut', usage: this.#usageSoFar(), ...this.#dialect.replyOf(this.#draft) };
  }

  #usageSoFar(): TokenUsage {
    return { ...(this.#draft.usage ?? UNKNOWN_USAGE), complete: false };
  }
}

/** An answer that came without a stream although one was asked for. */
async function* wholeAnswer(response: Response): AsyncGenerator<SseFrame> {
  yield { event: '', data: await response.text() };
  yield { event: '', data: DONE };
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}

/** Nothing was generated for it: the request never left, or was turned away at the door. */
function isUnpaid(trouble: Trouble, failure: ProviderFailure): boolean {
  if (trouble.kind === 'thrown') return failure.kind === 'transport' && failure.cause === 'connect';
  if (trouble.kind === 'frame' || trouble.status === 408) return false;
  return trouble.status < 500 || trouble.status === 503 || trouble.status === 529;
}
