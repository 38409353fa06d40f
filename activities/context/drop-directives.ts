import type { Shown } from '../model/port.ts';
import { type Stage, tokensOf } from './stage.ts';

/** A directive carries the whole objective, so only the newest says anything. Always applied. */
export const dropDirectives: Stage = (shown) => {
  const newest = shown.findLastIndex(isDirective);
  const dropped = shown.filter((message, n) => n < newest && isDirective(message));
  if (dropped.length === 0) return { shown, freedTokens: 0 };
  return {
    shown: shown.filter((message) => !dropped.includes(message)),
    freedTokens: dropped.reduce((sum, message) => sum + tokensOf(message), 0),
  };
};

function isDirective(message: Shown): boolean {
  return message.kind === 'directive' || (message.kind === 'user' && message.source === 'directive');
}
