import type { Shown } from '../model/port.ts';
import { type Stage, sumTokens } from './stage.ts';

/** A directive carries the whole objective, so only the newest says anything. Always applied. */
export const dropDirectives: Stage = (shown) => {
  const newest = shown.findLastIndex(isDirective);
  const isSuperseded = (message: Shown, n: number) => n < newest && isDirective(message);
  const freedTokens = sumTokens(shown.filter(isSuperseded));
  if (freedTokens === 0) return { shown, freedTokens };
  return { shown: shown.filter((message, n) => !isSuperseded(message, n)), freedTokens };
};

export function isDirective(message: Shown): boolean {
  if (message.kind !== 'user') return message.kind === 'directive';
  // One that only says to go on has no objective to repeat.
  return message.source === 'directive' && message.continues === undefined;
}
