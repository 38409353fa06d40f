import type { Frame } from './wire.ts';

type Fields = Readonly<Record<string, unknown>>;

type Spoken = Exclude<Frame, { readonly cut: true }>;

interface Item {
  readonly id: string;
  readonly type: 'message' | 'function_call' | 'reasoning';
  readonly index: number | null;
  readonly callId: string;
  readonly name: string;
  text: string;
}

/** How much of the protocol is said: all of it, or deltas and a last event without items, as some gateways do. */
export type Detail = 'whole' | 'deltas';

/**
 * Chat-completions frames as events of a responses stream. Texts pass through; what was absent in a frame is absent in
 * its events. The last event stands in the place of the end marker.
 */
export class ResponseFrames {
  readonly #detail: Detail;
  readonly #items: Item[] = [];
  #finish: string | null = null;
  #usage: unknown = null;
  #sequence = 0;

  constructor(detail: Detail) {
    this.#detail = detail;
  }

  /** The events of one frame, as text. A string frame passes as it is, but for the end marker. */
  translate(frame: Spoken): string[] {
    if (typeof frame === 'string') return frame.startsWith('data: [DONE]') ? this.#end() : [frame];
    if ('type' in frame) return [this.#event(frame)];
    if (frame.error !== undefined) return [this.#event({ type: 'error', ...asFields(frame.error) })];
    if (frame.usage !== undefined) this.#usage = frame.usage;
    return (frame.choices ?? []).flatMap((choice) => this.#choice(asFields(choice)));
  }

  #choice(choice: Fields): string[] {
    const delta = asFields(choice['delta']);
    const events: string[] = [];
    const reasoning = delta['reasoning_content'];
    if (typeof reasoning === 'string') events.push(...this.#say('reasoning', reasoning));
    if (typeof delta['content'] === 'string') events.push(...this.#say('message', delta['content']));
    if (typeof delta['refusal'] === 'string') events.push(...this.#say('message', delta['refusal'], 'refusal'));
    for (const call of (delta['tool_calls'] ?? []) as readonly Fields[]) events.push(...this.#call(call));
    if (typeof choice['finish_reason'] === 'string') this.#finish = choice['finish_reason'];
    return events;
  }

  #say(type: 'message' | 'reasoning', delta: string, part: 'output_text' | 'refusal' = 'output_text'): string[] {
    const last = this.#items.at(-1);
    const item = last?.type === type ? last : this.#open({ type, name: '', callId: '' }, this.#items.length);
    item.text += delta;
    const kind = type === 'reasoning' ? 'response.reasoning_summary_text.delta' : `response.${part}.delta`;
    const where = { item_id: item.id, output_index: item.index, content_index: 0, summary_index: 0 };
    return [...(item === last ? [] : [this.#added(item)]), this.#event({ type: kind, ...where, delta })];
  }

  #call(fragment: Fields): string[] {
    const body = asFields(fragment['function']);
    const id = fragment['id'];
    const index = typeof fragment['index'] === 'number' ? fragment['index'] : null;
    const args = typeof body['arguments'] === 'string' ? body['arguments'] : '';
    const isAnother = (item: Item) => body['name'] !== undefined && item.index !== index;
    const known = this.#items.find(
      (item) => item.type === 'function_call' && id !== undefined && item.callId === id && !isAnother(item),
    );
    const begins = !known && (id !== undefined || body['name'] !== undefined);
    const added = begins
      ? this.#open({ type: 'function_call', name: asText(body['name']), callId: asText(id) }, index)
      : null;
    const owner = added ?? known ?? this.#items.findLast((item) => item.type === 'function_call');
    if (owner) owner.text += args;
    const named = added ?? known;
    const where = {
      ...(named && named.id !== '' ? { item_id: named.id } : {}),
      ...(index === null ? {} : { output_index: index }),
    };
    return [
      ...(added ? [this.#added(added)] : []),
      ...(args === '' ? [] : [this.#event({ type: 'response.function_call_arguments.delta', ...where, delta: args })]),
    ];
  }

  #open(item: Pick<Item, 'type' | 'name' | 'callId'>, index: number | null): Item {
    const prefix = { message: 'msg', function_call: 'fc', reasoning: 'rs' }[item.type];
    const isNameless = item.type === 'function_call' && item.callId === '';
    const opened: Item = { ...item, id: isNameless ? '' : `${prefix}_${this.#items.length}`, index, text: '' };
    this.#items.push(opened);
    return opened;
  }

  #added(item: Item): string {
    const where = item.index === null ? {} : { output_index: item.index };
    return this.#event({ type: 'response.output_item.added', ...where, item: shown({ ...item, text: '' }) });
  }

  #end(): string[] {
    const whole = this.#detail === 'whole' ? this.#items.map(shown) : [];
    const done = whole.map((item, n) => this.#event({ type: 'response.output_item.done', output_index: n, item }));
    return [...done, this.#event(this.#last(whole))];
  }

  #last(output: readonly Fields[]): Fields & { type: string } {
    const usage = usageOf(this.#usage);
    const base = { object: 'response', id: 'resp_scripted', output, ...(usage ? { usage } : {}) };
    const ends = (status: string, more: Fields = {}) => ({
      type: `response.${status}`,
      response: { ...base, status, ...more },
    });
    switch (this.#finish) {
      case 'length':
        return ends('incomplete', { incomplete_details: { reason: 'max_output_tokens' } });
      case 'content_filter':
        return ends('incomplete', { incomplete_details: { reason: 'content_filter' } });
      case 'error':
        return ends('failed', { error: { code: 'server_error', message: 'it failed' } });
      default:
        return ends('completed');
    }
  }

  #event(fields: Fields & { readonly type: string }): string {
    const body = { ...fields, sequence_number: this.#sequence };
    this.#sequence += 1;
    return `event: ${fields.type}\ndata: ${JSON.stringify(body)}\n\n`;
  }
}

/** The whole response of frames, as an answer without a stream. */
export function wholeResponse(frames: readonly Spoken[]): unknown {
  const translator = new ResponseFrames('whole');
  const events = frames.flatMap((frame) => translator.translate(frame));
  const last = /\ndata: (.*)\n\n$/.exec(events.at(-1) ?? '')?.[1] ?? '{}';
  return (JSON.parse(last) as { response?: unknown }).response;
}

function shown({ type, id, callId, name, text }: Item): Fields {
  const named = id === '' ? {} : { id };
  switch (type) {
    case 'message':
      return { type, ...named, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text }] };
    case 'function_call':
      return { type, ...named, ...(callId === '' ? {} : { call_id: callId }), name, arguments: text };
    case 'reasoning': {
      const summary = [{ type: 'summary_text', text }];
      return { type, ...named, summary, encrypted_content: `sealed:${text}`, status: 'completed' };
    }
  }
}

function usageOf(usage: unknown): Fields | null {
  const report = asFields(usage);
  const { prompt_tokens: input, completion_tokens: output, total_tokens: total } = report;
  if (input === undefined && output === undefined) return null;
  return {
    input_tokens: input,
    input_tokens_details: report['prompt_tokens_details'],
    output_tokens: output,
    output_tokens_details: report['completion_tokens_details'],
    total_tokens: total,
  };
}

function asFields(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
