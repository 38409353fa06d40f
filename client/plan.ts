import { setPlan, type SetPlan } from '../activities/store/plan.ts';
import type { Db } from '../activities/store/database.ts';
import { onStore } from './faults.ts';

/** How a session's plan flag stands now, and whether this request changed it. */
export interface PlanState {
  readonly plan: boolean;
  readonly changed: boolean;
}

/** Null where the tenant has no such session. */
export async function planSession(db: Db, request: SetPlan): Promise<PlanState | null> {
  const answer = await onStore(() => setPlan(db, request));
  return answer === 'unknown' ? null : { plan: request.plan, changed: answer === 'set' };
}
