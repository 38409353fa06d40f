import { type ChatRequest, callTools, countToolResults, type Reply, say } from '../testing/index.ts';

/** One small read a round, as many rounds as the prompt says; then the end. */
export function rules(request: ChatRequest): Reply {
  const prompt = request.messages.find((message) => message.role === 'user')?.content;
  const rounds = Number(/rounds=(\d+)/.exec(typeof prompt === 'string' ? prompt : '')?.[1] ?? 0);
  const done = countToolResults(request);
  if (done >= rounds) return say('Done.');
  // Never the same twice in a row, which would be no progress.
  return callTools([{ name: 'read_file', arguments: { path: 'small.txt', limit: 100 + (done % 2) } }]);
}
