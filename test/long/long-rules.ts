import { type ChatRequest, callTools, type Reply, say } from '../../testing/index.ts';
import { billed, isSummary, ramble } from '../support/long-talk.ts';

export const options = { keepBodies: false };

const CALLS = 5;
const WHY = 'because the page before it said that the answer would be on one of the next pages, or after them';
/** Pages that were asked for, by task. */
const asked = new Map<string, number>();

/** Reads on, five pages a step, as many steps as the task says. */
export function rules(request: ChatRequest): Reply {
  const [, task = '', steps = '0'] = /Find (\w+), steps=(\d+)/.exec(JSON.stringify(request.messages)) ?? [];
  const pages = asked.get(task) ?? 0;
  if (isSummary(request))
    return billed(say(`Read ${pages} pages; nothing was found yet. ${ramble(pages, 2_000)}`), request);
  if (pages >= Number(steps) * CALLS) return billed(say('It is not there.'), request);
  asked.set(task, pages + CALLS);
  const calls = Array.from({ length: CALLS }, (_, n) => ({
    name: 'look',
    arguments: { page: pages + n + 1, why: WHY },
  }));
  return billed(callTools(calls, { text: `Nothing on page ${pages}. I go on with the next five.` }), request);
}
