export interface Frame {
  readonly id?: string;
  readonly event?: string;
  readonly comment?: string;
  // What a route sends is judged by the tests.
  readonly data: Record<string, unknown>;
}

/** A strict reader of server-sent events: each frame is fields of known names, nothing else. */
export async function readSse(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  const frames = framesOf(response);
  return {
    status: response.status,
    async until(matches: (frame: Frame) => boolean): Promise<Frame> {
      for (;;) {
        const { done, value } = await frames.next();
        if (done) throw new Error('the stream closed before');
        if (matches(value)) return value;
      }
    },
    /** All frames that are left, without comments, until the server closes. */
    async all(): Promise<Frame[]> {
      const left: Frame[] = [];
      for await (const frame of frames) if (frame.comment === undefined) left.push(frame);
      return left;
    },
  };
}

async function* framesOf(response: Response): AsyncGenerator<Frame, undefined, void> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    for (const part of parts) yield frameOf(part);
  }
  if (text !== '') throw new Error(`half a frame: ${text}`);
}

function frameOf(part: string): Frame {
  if (part.startsWith(':')) return { comment: part.slice(1).trim(), data: {} };
  const fields = Object.fromEntries(
    part.split('\n').map((line) => {
      const [, name, value] = /^(id|event|data): (.*)$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`not a field: ${line}`);
      return [name, value];
    }),
  );
  return { ...fields, data: JSON.parse(fields.data ?? 'null') as Record<string, unknown> };
}
