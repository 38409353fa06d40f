import type { Db } from '../activities/store/database.ts';
import type { GoalWish } from '../activities/store/goal-plan.ts';
import type { GoalSchedule } from '../activities/store/schema.ts';
import type { ClientEngine } from './engine.ts';
import type { Catalogue } from './submit.ts';

export interface GoalDeps {
  readonly db: Db;
  readonly engine: ClientEngine;
  readonly catalogue: Catalogue;
}

export interface NewGoalRequest extends GoalWish {
  readonly tenant: string;
  /** The caller's own key: the same key with the same body is the same goal. */
  readonly key: string;
  readonly objective: string;
  /** The session that is to work on it, or a job of that session; a new one if left out. */
  readonly session?: string | undefined;
  readonly agent?: string | undefined;
  readonly workspace?: string | undefined;
  /** When it begins anew; with a session: when that one goal is woken. */
  readonly schedule?: GoalSchedule | undefined;
  readonly by: string;
}

/** Who a goal is: the same key is the same id, and the same body the same fingerprint. */
export interface Identity {
  readonly id: string;
  readonly fingerprint: string;
}

export type CreatedGoal =
  /** `session`: null for a recurring one, each of whose rounds has one of its own. */
  | { readonly kind: 'accepted'; readonly goal: string; readonly session: string | null; readonly isNew: boolean }
  | { readonly kind: 'conflict'; readonly goal: string }
  | { readonly kind: 'another_is_open' }
  | { readonly kind: 'unknown_session' }
  | { readonly kind: 'unknown_agent'; readonly asked: string; readonly known: readonly string[] }
  | { readonly kind: 'refused'; readonly why: string };
