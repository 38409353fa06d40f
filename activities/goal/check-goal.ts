import type { Deps } from '../deps.ts';
import { findVerdict, keepVerdict } from '../store/goal-verdicts.ts';
import { goalPlace } from '../store/goals.ts';
import { sha256 } from '../store/hash.ts';
import { wordsHash } from './claim.ts';
import { runCheck } from './run-check.ts';

export interface JudgedTurnRequest {
  readonly goal: string;
  readonly turn: string;
}

export interface Checked {
  readonly outcome: 'passed' | 'failed' | 'none';
  readonly evidence: string;
  readonly verdict: string | null;
}

/** The goal's own checks, one after the other; the first that fails ends it. What they say goes to the store. */
export async function checkGoal(deps: Deps, { goal, turn }: JudgedTurnRequest): Promise<Checked> {
  const { db } = deps.database;
  const place = await goalPlace(db, goal);
  if (!place || place.row.checks.length === 0) return { outcome: 'none', evidence: '', verdict: null };
  const key = sha256('checks', goal, turn);
  const before = await findVerdict<Checked>(db, key);
  if (before) return before;
  const said: string[] = [];
  let outcome: Checked['outcome'] = 'passed';
  for (const [n, check] of place.row.checks.entries()) {
    const ran = await runCheck(deps, place, check, sha256(key, String(n)));
    said.push(ran.text);
    if (!ran.passed) {
      outcome = 'failed';
      break;
    }
  }
  const text = deps.masker.text(said.join('\n\n'));
  const told = { outcome, evidence: wordsHash(text), verdict: key };
  const kept = { key, goal, session: place.row.session, turn, source: 'checks', told, found: outcome, text } as const;
  const verdict = await keepVerdict<Checked>(db, kept);
  deps.notifier.moved(place.stream);
  return verdict;
}
