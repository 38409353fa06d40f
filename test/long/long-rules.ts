import { type ChatRequest, callTools, type Reply, say } from '../../testing/index.ts';
import { billed, isSummary, ramble } from '../support/long-talk.ts';

export const options = { keepBodies: false };

const CALLS = 5;
const WHY = 'because the page before it said that the answer would be on one of the next pages, or after them';
let pages = 0;

/** Reads on, five pages a step, as many steps as the task says. */
export function rules(request: ChatRequest): Reply {
  if (isSummary(request))
    return billed(say(`Read ${pages} pages; nothing was found yet. ${ramble(pages, 2_000)}`), request);
  const steps = Number(/steps=(\d+)/.exec(JSON.stringify(request.messages))?.[1] ?? 0);
  if (pages >= steps * CALLS) return billed(say('It is not there.'), request);
  const calls = Array.from({ length: CALLS }, () => ({ name: 'look', arguments: { page: (pages += 1), why: WHY } }));
  return billed(callTools(calls, { text: `Nothing on page ${pages - CALLS}. I go on with the next five.` }), request);
}
