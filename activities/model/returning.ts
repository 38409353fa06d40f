import type { Shown } from './port.ts';
import type { ReasoningReturn } from './wire-port.ts';

/** Says of which messages the reasoning goes back: never to another model than the one that made it. */
export function returning(
  messages: readonly Shown[],
  target: { readonly model: string; readonly reasoning: ReasoningReturn },
): (n: number) => boolean {
  const { model, reasoning } = target;
  const turnStart = messages.findLastIndex((message) => message.kind === 'user' || message.kind === 'directive');
  return (n) => {
    const message = messages[n];
    if (message?.kind !== 'assistant' || message.model !== model) return false;
    return reasoning === 'send' || (reasoning === 'send_in_current_turn' && n > turnStart);
  };
}
