import { type ChatRequest, callTools, countToolResults, lastUserText, type Reply, say } from '../../testing/index.ts';

/** One call, then an answer: follows from the conversation alone. */
export function rules(request: ChatRequest): Reply {
  return countToolResults(request) === 0
    ? callTools([{ name: 'x', arguments: {} }])
    : say(`done: ${lastUserText(request)}`);
}

export const options = { expectKey: true };
