import type { Patience } from './policy.ts';

/** Tools that must have succeeded in a turn before it may end on a final answer. */
export interface Contract {
  readonly tools: readonly string[];
  /** How often the model is asked again; then the answer stands, marked as unmet. */
  readonly maxRetries: number;
  /** Delay before the first rerun, ms; doubled for each further one, up to `maxMs`. */
  readonly baseMs: number;
  readonly maxMs: number;
}

/** What the agent's definition, and the job, ask of the way a turn goes on and ends. */
export interface TurnRules {
  readonly role: 'agent' | 'sub_agent';
  /** Whether there is another model to go on with. */
  readonly fallback: 'named' | 'none';
  /** Whether the answer is to fit a JSON Schema. */
  readonly schema: 'asked' | 'none';
  readonly todoGate: 'on' | 'off';
  /** Output tokens that the turn is to use; never for sub-agents. */
  readonly tokenTarget: number | null;
  readonly contract: Contract | null;
  /** Absent where the agent says nothing of it. */
  readonly patience?: Partial<Patience>;
  /** A goal is at work in the session: it judges each end, and nothing else objects to one. */
  readonly goal?: 'active';
}

export const PLAIN_RULES: TurnRules = {
  role: 'agent',
  fallback: 'none',
  schema: 'none',
  todoGate: 'off',
  tokenTarget: null,
  contract: null,
};
