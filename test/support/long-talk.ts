import { type ChatRequest, callTools, type Reply } from '../../testing/index.ts';

/** Tokens of a request as a provider counts them: by its bytes, with what each message costs besides. */
export function tokensOf(request: ChatRequest): number {
  return Math.ceil(JSON.stringify([request.messages, request.tools ?? []]).length / 4);
}

/** The same answer with a bill that fits the request. */
export function billed(reply: Reply, request: ChatRequest): Reply {
  const { content } = reply;
  if (content.kind !== 'message') return reply;
  const said = content.text.length + JSON.stringify(content.calls).length;
  return {
    ...reply,
    content: { ...content, usage: { prompt: tokensOf(request), completion: Math.ceil(said / 4) + 1 } },
  };
}

/** The request of a compaction. */
export function isSummary(request: ChatRequest): boolean {
  return String(request.messages[0]?.content).startsWith('You keep the memory of an agent');
}

/** One word of so many characters that never repeats itself, so that nobody takes it for a loop. */
export function ramble(seed: number, chars: number): string {
  let text = '';
  for (let n = seed; text.length < chars; n = (n * 48_271 + 11) % 2_147_483_647) text += n.toString(36);
  return text.slice(0, chars);
}

/** One more step: a lot of words that no cheap stage can shorten, and a call that is not the one before. */
export function step(n: number, chars: number): Reply {
  return callTools([{ name: 'list_files', arguments: { depth: 1 + (n % 2) } }], {
    text: `Step ${n}. ${ramble(n, chars)}`,
  });
}
