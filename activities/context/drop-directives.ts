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
  return message.kind === 'directive' || (message.kind === 'user' && message.source === 'directive');
}
