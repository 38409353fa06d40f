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

/** One more step: a lot of words that no cheap stage can shorten, and a call. */
export function step(n: number, chars: number): Reply {
  return callTools([{ name: 'list_files', arguments: {} }], { text: `Step ${n}. ${'word'.repeat(chars / 4)}` });
}
