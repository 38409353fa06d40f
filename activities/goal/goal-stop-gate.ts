import { Context } from '@temporalio/activity';
import { eq } from 'drizzle-orm';
import type { Deps } from '../deps.ts';
import type { AskedStop } from '../gate/hooks.ts';
import { findVerdict, keepVerdict } from '../store/goal-verdicts.ts';
import { goalPlace } from '../store/goals.ts';
import { sha256 } from '../store/hash.ts';
import { turn } from '../store/schema.ts';
import { lastTextOf } from '../store/last-text.ts';
import type { JudgedTurnRequest } from './check-goal.ts';

export interface Gated {
  readonly answer: 'pass' | 'block' | 'stop';
  readonly verdict: string | null;
}

/** Asks the hooks of the stop gate once before a goal is complete: inside its turns nobody asks them. */
export async function goalStopGate(deps: Deps, { goal, turn: turnId }: JudgedTurnRequest): Promise<Gated> {
  const { db } = deps.database;
  const place = await goalPlace(db, goal);
  if (!place || !deps.hooks.has('StopGate')) return { answer: 'pass', verdict: null };
  const key = sha256('goal_stop_gate', goal, turnId);
  const before = await findVerdict<Gated>(db, key);
  if (before) return before;
  const [judged] = await db.select({ head: turn.head }).from(turn).where(eq(turn.id, turnId));
  const head = judged?.head ?? '';
  const asked = await deps.hooks.askStop(
    {
      session: place.row.session,
      turn: turnId,
      workspace: place.workspacePath,
      head,
      lastText: await lastTextOf(deps, head),
      ask: 1,
      stopHookActive: false,
      backgroundWork: [],
    },
    Context.current().cancellationSignal,
  );
  const told: Gated = { answer: asked.kind, verdict: asked.kind === 'pass' ? null : key };
  const facts = { key, goal, session: place.row.session, turn: turnId, source: 'stop_gate', told, found: asked.kind };
  const verdict = await keepVerdict<Gated>(db, {
    ...facts,
    source: 'stop_gate',
    text: deps.masker.text(saidBy(asked)),
  });
  deps.notifier.moved(place.stream);
  return verdict;
}

function saidBy(asked: AskedStop): string {
  switch (asked.kind) {
    case 'pass':
      return 'Nobody objects.';
    case 'block':
      return asked.reason.trim() || 'The stop gate objects.';
    case 'stop':
      return asked.why?.trim() || 'The stop gate wants the work to stop.';
  }
}
