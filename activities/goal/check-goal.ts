import { Context } from '@temporalio/activity';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { supervise } from '../process/supervise.ts';
import { findVerdict, keepVerdict } from '../store/goal-verdicts.ts';
import { goalPlace, type GoalPlace } from '../store/goals.ts';
import { sha256 } from '../store/hash.ts';
import type { GoalCheck } from '../store/schema.ts';
import { show } from '../tools/capture.ts';
import { type Finished, runProcess } from '../tools/run-process.ts';
import { bash } from '../tools/shell.ts';
import { fitText } from '../tools/text.ts';
import { giveUpUnlessCancelled } from '../turn/call-outcome.ts';
import { wordsHash } from './claim.ts';

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

interface Ran {
  readonly passed: boolean;
  readonly text: string;
}

async function runCheck(deps: Deps, place: GoalPlace, check: GoalCheck, key: string): Promise<Ran> {
  const { outputChars } = POLICY.goal.checks;
  const { cancellationSignal: signal } = Context.current();
  const finished = await runProcess(
    { ...bash(check.command), timeLimitMs: check.timeoutSeconds * 1_000, gentle: true },
    {
      workspace: place.workspacePath,
      signal,
      idempotencyKey: key,
      details: null,
      spawn: supervise,
      resultChars: outputChars,
      maskStream: () => deps.masker.stream(),
    },
  );
  // A worker that leaves has found nothing out.
  if (finished.stopped === 'aborted') giveUpUnlessCancelled(signal);
  const shown = fitText(show(finished.captured, outputChars).text, outputChars);
  const how = howItEnded(finished, check);
  return {
    passed: finished.stopped === null && finished.exit.code === 0,
    text: `Check \`${fitText(check.command, 400)}\`: ${how}.${shown.trim() === '' ? '' : `\n${shown}`}`,
  };
}

function howItEnded({ stopped, exit }: Finished, { timeoutSeconds }: GoalCheck): string {
  switch (stopped) {
    case 'timeout':
      return `not finished within ${timeoutSeconds} s`;
    case 'output':
      return 'ended because it wrote too much';
    case 'aborted':
      return 'stopped';
    case null:
      if (exit.code === 0) return 'passed (exit code 0)';
      return exit.code === null ? `ended by ${exit.signal ?? 'a signal'}` : `failed with exit code ${exit.code}`;
  }
}
