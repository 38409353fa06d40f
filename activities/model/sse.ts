/** One event of a server-sent stream that carries data. */
export interface SseFrame {
  readonly event: string;
  readonly data: string;
}

/**
 * Data frames of a server-sent stream; characters may be split over chunks. Comments, empty events and
 * comments that a gateway wrapped as data (`data: : …`) are skipped. A last frame without its
 * blank line counts only if it is whole.
 */
export async function* readFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<SseFrame> {
  let frame: SseFrame = EMPTY;
  for await (const line of readLines(chunks)) {
    if (line !== '') {
      frame = withLine(frame, line);
      continue;
    }
    if (hasData(frame)) yield frame;
    frame = EMPTY;
  }
  if (hasData(frame) && isWhole(frame.data)) yield frame;
}

export const DONE = '[DONE]';

const EMPTY: SseFrame = { event: '', data: '' };

function hasData({ data }: SseFrame): boolean {
  return data.trim() !== '' && !data.startsWith(':');
}

function withLine(frame: SseFrame, line: string): SseFrame {
  const colon = line.indexOf(':');
  if (colon === 0) return frame;
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (field === 'event') return { ...frame, event: value };
  if (field !== 'data') return frame;
  return { ...frame, data: frame.data === '' ? value : `${frame.data}\n${value}` };
}

function isWhole(data: string): boolean {
  if (data.startsWith(DONE)) return true;
  try {
    JSON.parse(data);
    return true;
  } catch {
    return false;
  }
}

async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  let afterReturn = false;
  for await (const chunk of chunks) {
    let text = decoder.decode(chunk, { stream: true });
    if (text === '') continue;
    // A "\r\n" split over two chunks is one line end.
    if (afterReturn && text.startsWith('\n')) text = text.slice(1);
    afterReturn = text === '' ? false : text.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = rest + (lines[0] ?? '');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  rest += decoder.decode();
  if (rest !== '') yield rest;
}
