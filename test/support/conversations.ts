import {
  type ChatRequest,
  type RecordedRequest,
  type Reply,
  type ScriptedProvider,
  status,
} from '../../testing/index.ts';

/** How the model behaves in one conversation; a repeated request must get the same answer. */
export type Play = (request: ChatRequest) => Reply;

/** Many conversations at one scripted provider, told apart by the first thing a user said in them. */
export interface Conversations {
  readonly rules: Play;
  on(firstUserText: string, play: Play): void;
  requestsOf(provider: ScriptedProvider, firstUserText: string): RecordedRequest[];
}

export function conversations(): Conversations {
  const plays = new Map<string, Play>();
  return {
    rules: (request) => plays.get(opening(request))?.(request) ?? status(400, 'nobody wrote this conversation'),
    on: (text, play) => void plays.set(text, play),
    requestsOf: (provider, text) => provider.requests.filter(({ body }) => opening(body) === text),
  };
}

function opening(request: ChatRequest): string {
  return userTexts(request)[0] ?? '';
}

export function userTexts(request: ChatRequest): string[] {
  return request.messages.filter(({ role }) => role === 'user').map(({ content }) => String(content));
}

/** The newest thing that a user, or the runtime in a user's place, said. */
export function newestUserText(request: ChatRequest): string {
  return userTexts(request).at(-1) ?? '';
}
