import { type ChatRequest, type Reply, say, status } from '../../testing/index.ts';
import { newestUserText, userTexts } from './conversations.ts';
import { beginGoal, type GoalWishes, roleOf, type TestGoal, verdict, vote } from './goals.ts';
import type { TestHouse } from './test-house.ts';

/** Who says what in one goal; whoever is not named is never asked. */
export type Plays = Partial<Record<ReturnType<typeof roleOf>, (request: ChatRequest) => Reply>>;

/** Told apart by a word in the objective, which the directive and the judge's material both hold: the first that fits. */
export function goalPlays() {
  const plays = new Map<string, Plays>();
  const rules = (request: ChatRequest): Reply => {
    const said = userTexts(request).join('\n');
    const name = [...plays.keys()].find((each) => said.includes(`GOAL ${each}.`));
    const play = name === undefined ? undefined : plays.get(name)?.[roleOf(request)];
    return play?.(request) ?? status(400, `nobody wrote this: ${roleOf(request)} of ${name ?? 'nobody'}`);
  };
  const set = (name: string, own: Plays) => void plays.set(name, own);
  const begin = async (at: TestHouse, name: string, own: Plays, wishes: GoalWishes = {}): Promise<TestGoal> => {
    set(name, own);
    return await beginGoal(at, `GOAL ${name}. Do it well.`, wishes);
  };
  return { rules, set, begin };
}

/** A judge and a sceptic who are content. */
export const complete = { judge: () => verdict('candidate_complete'), sceptic: () => vote('approve') };

/** Each reply is another one: it says how many rounds the conversation has seen. */
export const counting = (request: ChatRequest) =>
  say(
    `Said ${request.messages.filter(({ role }) => role === 'assistant').length + 1} of ${newestUserText(request).length}.`,
  );
