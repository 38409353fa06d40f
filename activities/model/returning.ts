import type { Shown } from './port.ts';
import type { ReasoningReturn } from './wire-port.ts';

/** Who is asked. */
export interface Target {
  readonly provider: string;
  readonly model: string;
  /** Of fields such as `reasoning_content`. */
  readonly reasoning: ReasoningReturn;
}

/** Says of which messages the reasoning goes back: never to another model, or elsewhere, than where it was made. */
export function returning(messages: readonly Shown[], { provider, model, reasoning }: Target): (n: number) => boolean {
  const turnStart = messages.findLastIndex((message) => message.kind === 'user' || message.kind === 'directive');
  return (n) => {
    const message = messages[n];
    if (message?.kind !== 'assistant' || message.provider !== provider || message.model !== model) return false;
    return reasoning === 'send' || (reasoning === 'send_in_current_turn' && n > turnStart);
  };
}
