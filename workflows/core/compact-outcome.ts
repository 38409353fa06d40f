import type { ProviderFailure, Usage } from './sample-outcome.ts';

/** Why a context is compacted: our own estimate, or the provider's word. */
export type CompactionCause = 'window' | 'overflow' | 'too_large';

/** What one `compact` activity came back with. */
export type CompactOutcome =
  | {
      readonly kind: 'compacted';
      /** Hash of the summary's message. */
      readonly head: string;
      readonly beforeTokens: number;
      readonly afterTokens: number;
      readonly usage: Usage;
    }
  /** The agent does without. */
  | { readonly kind: 'off' }
  /** There is no finished part that a summary could stand for. */
  | { readonly kind: 'nothing' }
  /** The model wrote no summary. */
  | { readonly kind: 'empty'; readonly usage: Usage }
  | { readonly kind: 'attempts_lost'; readonly attempts: number }
  | { readonly kind: 'cut' }
  | (ProviderFailure & { readonly usage: Usage });
