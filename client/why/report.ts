import type { EffectState } from '../../activities/store/schema.ts';
import type { Layer } from '../../workflows/core/journal.ts';
import type { Effect } from '../../workflows/core/tools.ts';
import type { ShownAgent } from '../agents.ts';
import type { JobTurnEnd } from '../job.ts';

/** How one layer stands; an outer end is never implied by an inner one. Times are ISO. */
export interface ChainLink {
  readonly layer: Layer;
  /** Null while it has no end. */
  readonly reason: string | null;
  readonly detail: string | null;
  readonly decidedBy: string | null;
  readonly signal: string | null;
  readonly at: string | null;
  readonly words: string;
}

/** What a turn that has no end does now. */
export interface Doing {
  /** `lost`: the store has it open and the engine has it closed; recovery writes its end. */
  readonly kind: 'works' | 'rests' | 'waits' | 'retries' | 'lost' | 'not_known';
  readonly since: string | null;
  readonly until: string | null;
  readonly attempt: number | null;
  readonly words: string;
}

/** Something a person, or the world, is to answer. */
export interface Waiting {
  readonly id: string;
  readonly for: 'approval' | 'outcome' | 'input' | 'event';
  readonly tool: string;
  /** Null: until it is answered. */
  readonly until: string | null;
}

/** A call of which nobody knows what it did to the world. */
export interface UnknownEffect {
  readonly key: string;
  readonly tool: string;
  readonly effect: Effect;
  readonly state: EffectState;
  readonly note: string | null;
  readonly startedAt: string | null;
}

/** What a job goes on with by itself after a machine ended its turn. */
export interface GoesOn {
  readonly input: string;
  /** The n-th time, of so many. */
  readonly n: number;
  readonly of: number;
  readonly state: 'queued' | 'opened' | 'taken_back';
  /** The turn that it opened. */
  readonly turn: string | null;
}

/** Why something is as it is, and what to do now: ids, codes and fixed sentences, no content. */
export interface Why {
  readonly id: string;
  readonly session: string;
  readonly job: string | null;
  /** Null while none has opened. */
  readonly turn: string | null;
  readonly state: 'queued' | 'never_ran' | 'running' | 'ended';
  /** From the last stream outwards. */
  readonly chain: readonly ChainLink[];
  readonly end: JobTurnEnd | null;
  readonly doing: Doing | null;
  /** Null where the job does not go on by itself. */
  readonly goesOn: GoesOn | null;
  readonly waitsFor: readonly Waiting[];
  readonly unknownEffects: readonly UnknownEffect[];
  /** Sub-agents that the turn has started. */
  readonly agents: readonly ShownAgent[];
  /** What to do now, most urgent first. */
  readonly advice: readonly string[];
}
