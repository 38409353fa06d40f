import { POLICY } from '../../workflows/core/policy.ts';
import type { CallDrafts } from './call-fragments.ts';
import { RepetitionWatch } from './repetition-watch.ts';

/** What may be wrong with an output while it still comes. */
export type Seen =
  | 'fine'
  /** It repeats itself without end. */
  | 'loops'
  /** Longer than its cap can ever be: the provider does not keep to it, and may never stop. */
  | 'runs_away';

/** Watches what one request brings, each channel by itself: some providers cap only the text. */
export class OutputWatch {
  readonly #mostChars: number;
  readonly #loops: { readonly text: RepetitionWatch; readonly reasoning: RepetitionWatch } | null;
  #textChars = 0;
  #reasoningChars = 0;

  constructor(request: { readonly outputTokens: number; readonly watchRepetition: boolean }) {
    this.#mostChars = request.outputTokens * POLICY.sample.charsPerTokenMax;
    this.#loops = request.watchRepetition ? { text: new RepetitionWatch(), reasoning: new RepetitionWatch() } : null;
  }

  see({ text, reasoning }: { readonly text: string; readonly reasoning: string }, drafts: CallDrafts): Seen {
    if (this.#loops?.text.feed(text) || this.#loops?.reasoning.feed(reasoning)) return 'loops';
    this.#textChars += text.length;
    this.#reasoningChars += reasoning.length;
    const argumentChars = drafts.calls.reduce((sum, call) => sum + call.arguments.length, 0);
    const most = Math.max(this.#textChars, this.#reasoningChars, argumentChars);
    return most > this.#mostChars ? 'runs_away' : 'fine';
  }
}
