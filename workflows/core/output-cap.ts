import type { TurnState } from './turn-state.ts';

/** The output cap of the next sample, in tokens. */
export function outputCap({ output, limits }: TurnState): number {
  return output.cap === 'raised' ? Math.max(limits.outputTokens, limits.raisedOutputTokens) : limits.outputTokens;
}

/** A text that is cut while the cap can still be raised is dropped, and asked for again. */
export function mayRaise({ output, limits }: TurnState): boolean {
  return output.cap === 'usual' && output.continued === 0 && limits.raisedOutputTokens > limits.outputTokens;
}
