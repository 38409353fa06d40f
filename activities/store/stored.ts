import type { Permissions } from '../gate/permissions.ts';
import type { Limits, Patience } from '../../workflows/core/policy.ts';
import type { AnswerFault } from '../../workflows/core/turn-counters.ts';
import type { Contract } from '../../workflows/core/turn-rules.ts';
import type { PriceTable } from '../../workflows/core/usage.ts';
import type { Effect, Runs } from '../../workflows/core/tools.ts';

export interface StoredAgent {
  readonly name: string;
  readonly provider: string;
  readonly model: string;
  readonly instructions: string;
  readonly tools: readonly string[];
  readonly attended: boolean;
  readonly limits: Limits;
  /** What the agent says of it; the rest is as it is for everybody. */
  readonly patience?: Partial<Patience>;
  /** Absent where no price is known. */
  readonly prices?: PriceTable;
  /** Who goes on where the model is overloaded. */
  readonly fallback?: { readonly provider: string; readonly model: string };
  readonly contract?: Contract;
  readonly todoGate?: boolean;
  readonly tokenTarget?: number;
  /** What the answers of its turns have to fit, unless a job brings its own. */
  readonly outputSchema?: OutputSchema;
  /** Absent in what was stored before there were permissions: the list of tools is the permission. */
  readonly permissions?: Permissions;
  /** False: the context is never compacted. */
  readonly compaction?: boolean;
  /** Names of the agents that it may start. */
  readonly agents?: readonly string[];
}

/** JSON Schema of an object. */
export type OutputSchema = Readonly<Record<string, unknown>>;

/** An answer that fits its schema, or why there is none. */
export type StructuredOutput = { readonly value: unknown } | { readonly error: AnswerFault };

/** What the model is shown of a tool, and what the ledger needs to know of it. */
export interface StoredTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly effect: Effect;
  readonly runs: Runs;
}

/** What a person was shown; kept with the wait, so that a decision never depends on a rule that is gone. */
export interface Asked {
  /**
   * `permission`: may this call run; `question`: an answer for the agent; `event`: something outside has happened;
   * `outcome`: this call ran, and nobody knows whether it took effect.
   */
  readonly kind: 'permission' | 'question' | 'event' | 'outcome';
  readonly tool: string;
  readonly subject: string | null;
  readonly arguments: string;
  readonly onExpiry: 'deny' | 'block' | 'end';
}

/** What a person says of a call whose outcome nobody knew: it took effect, it did not, or: make it once more. */
export type OutcomeAnswer = 'happened' | 'absent' | 'again';

export type ApprovalAnswer = 'approved' | 'rejected' | 'cancelled' | 'message' | 'expired' | OutcomeAnswer;
