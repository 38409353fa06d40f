import { expect, test } from 'vitest';
import { readFrames } from '../../../activities/model/sse.ts';

async function frames(text: string, size = Number.POSITIVE_INFINITY): Promise<string[]> {
  const bytes = Buffer.from(text);
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, Math.min(at + size, bytes.length));
  }
  const data: string[] = [];
  for await (const frame of readFrames(pieces())) data.push(`${frame.event}|${frame.data}`);
  return data;
}

test.each([
  ['one frame', 'data: {"a":1}\n\n', ['|{"a":1}']],
  ['comments and empty events are nothing', ': ping\n\n\n\nid: 4\n\n: ping\ndata: x\n\n', ['|x']],
  ['a comment that a gateway wrapped', 'data: : PROCESSING\n\ndata: x\n\n', ['|x']],
  ['an empty data line', 'data:\n\ndata: x\n\n', ['|x']],
  ['event names', 'event: error\ndata: x\n\n', ['error|x']],
  ['no space after the colon', 'data:x\n\n', ['|x']],
  ['data over two lines', 'data: {\ndata: }\n\n', ['|{\n}']],
  ['line ends of all three kinds', 'data: a\r\n\r\ndata: b\r\rdata: c\n\n', ['|a', '|b', '|c']],
  ['a last frame that is whole, without its blank line', 'data: {"a":1}\n\ndata: [DONE]', ['|{"a":1}', '|[DONE]']],
  ['a last frame that is cut', 'data: {"a":1}\n\ndata: {"choices":[{"del', ['|{"a":1}']],
  ['characters of four bytes', 'data: "🎫ü€"\r\n\r\n', ['|"🎫ü€"']],
])('%s, in one piece and byte by byte', async (_name, text, expected) => {
  expect(await frames(text)).toEqual(expected);
  expect(await frames(text, 1)).toEqual(expected);
});
