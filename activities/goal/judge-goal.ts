import type { GoalUsage, JudgeVerdict, ScepticVote } from '../../workflows/core/goal/goal-event.ts';
import type { RequestLimits } from '../../workflows/core/goal/goal-limits.ts';
import { asText } from '../model/json.ts';
import type { Deps } from '../deps.ts';
import { waitsForLine } from '../store/awaited-event.ts';
import { findVerdict, firstAsked, keepVerdict, type NewVerdict } from '../store/goal-verdicts.ts';
import { goalPlace, type GoalPlace } from '../store/goals.ts';
import { sha256 } from '../store/hash.ts';
import type { OutputSchema } from '../store/schema.ts';
import { askModel } from './ask-model.ts';
import type { JudgedTurnRequest } from './check-goal.ts';
import { awaitedOf, wordsHash } from './claim.ts';
import { judgeMaterial } from './judge-material.ts';
import { JUDGE_INSTRUCTIONS, JUDGE_SCHEMA, SCEPTIC_INSTRUCTIONS, SCEPTIC_SCHEMA } from './judge-prompts.ts';

export interface JudgeGoalRequest extends JudgedTurnRequest {
  readonly failures: number;
  /** What the request may cost at most. */
  readonly left: RequestLimits;
}

export interface DoubtGoalRequest extends JudgeGoalRequest {
  /** Which sceptic is asked, from 1. */
  readonly sceptic: number;
}

type Told<V> = { readonly verdict: V; readonly usage: GoalUsage };

/** Asks the judge about a turn, once a try; what it says goes to the store. */
export async function judgeGoal(deps: Deps, request: JudgeGoalRequest): Promise<Told<JudgeVerdict>> {
  const { goal, turn, failures } = request;
  return await ask<JudgeVerdict>(deps, request, {
    key: sha256('judge', goal, turn, String(failures)),
    source: 'judge',
    instructions: JUDGE_INSTRUCTIONS,
    schema: JUDGE_SCHEMA,
    read: verdictOf,
  });
}

/** Asks one sceptic about a turn that the judge holds to be the last. */
export async function doubtGoal(deps: Deps, request: DoubtGoalRequest): Promise<Told<ScepticVote>> {
  const { goal, turn, failures, sceptic } = request;
  return await ask<ScepticVote>(deps, request, {
    key: sha256('sceptic', goal, turn, String(sceptic), String(failures)),
    source: 'sceptic',
    instructions: SCEPTIC_INSTRUCTIONS,
    schema: SCEPTIC_SCHEMA,
    read: voteOf,
  });
}

interface Asking<V> {
  readonly key: string;
  readonly source: 'judge' | 'sceptic';
  readonly instructions: string;
  readonly schema: OutputSchema;
  read(value: Said, key: string): { readonly verdict: V; readonly text: string; readonly nextStep: string | null };
}

type Said = Readonly<Record<string, unknown>>;

const NOTHING: GoalUsage = { tokens: 0, microUsd: 0 };

async function ask<V extends JudgeVerdict | ScepticVote>(
  deps: Deps,
  { goal, turn, left }: JudgeGoalRequest,
  asking: Asking<V>,
): Promise<Told<V>> {
  const { db } = deps.database;
  const { key, source, instructions, schema } = asking;
  const before = await findVerdict<Told<V>>(db, key);
  if (before) return before;
  const place = await goalPlace(db, goal);
  if (!place) throw new Error('a goal is not in the store');
  const now = (await firstAsked(db, key)) ?? new Date();
  const material = await judgeMaterial(deps, place, turn, now);
  const answer = await askModel(deps, place, { key, turn, instructions, material, schema, left });
  // Nothing was asked, so nothing is kept: more may be left the next time.
  if (answer.kind === 'unaffordable') return { verdict: answer as V, usage: NOTHING };
  const { value, usage } = answer;
  const read = value === null ? UNUSABLE : asking.read(value, key);
  const told = { verdict: read.verdict as V, usage };
  return await keep(deps, place, { key, goal, turn, source, told, found: told.verdict.kind, ...texts(deps, read) });
}

const UNUSABLE = { verdict: { kind: 'unusable' }, text: 'No usable answer came.', nextStep: null } as const;

function texts(deps: Deps, { text, nextStep }: { readonly text: string; readonly nextStep: string | null }) {
  return { text: deps.masker.text(text), nextStep: nextStep === null ? null : deps.masker.text(nextStep) };
}

async function keep<V>(deps: Deps, place: GoalPlace, verdict: Omit<NewVerdict<Told<V>>, 'session'>): Promise<Told<V>> {
  const kept = await keepVerdict(deps.database.db, { ...verdict, session: place.row.session });
  deps.notifier.moved(place.stream);
  return kept;
}

function verdictOf(said: Said, verdict: string): ReturnType<Asking<JudgeVerdict>['read']> {
  const [evidence, gap, nextStep, blocker] = ['evidence', 'gap', 'next_step', 'blocker'].map((name) =>
    asText(said[name]).trim(),
  );
  const event = said.decision === 'waiting' ? asText(said.wait_event).trim() : '';
  const text = [
    evidence,
    gap ? `Missing: ${gap}` : '',
    blocker ? `Blocked: ${blocker}` : '',
    event ? waitsForLine(event) : '',
  ]
    .filter(Boolean)
    .join('\n');
  const shown = { text: text || 'Nothing was said.', nextStep: nextStep || null };
  switch (said.decision) {
    case 'candidate_complete':
      return { ...shown, verdict: { kind: 'candidate_complete', verdict } };
    case 'blocked':
      return { ...shown, verdict: { kind: 'blocked', blocker: wordsHash(blocker || (evidence ?? '')), verdict } };
    case 'waiting': {
      const awaited = awaitedOf(asText(said.wait_until), event);
      return { ...shown, verdict: { kind: 'waiting', awaited, verdict } };
    }
    default:
      return { ...shown, verdict: { kind: 'continue', gap: wordsHash(gap || (evidence ?? '')), verdict } };
  }
}

function voteOf(said: Said, verdict: string): ReturnType<Asking<ScepticVote>['read']> {
  const text = asText(said.evidence).trim() || 'Nothing was said.';
  if (said.vote === 'approve') return { text, nextStep: null, verdict: { kind: 'approve', verdict } };
  const confidence = said.confidence === 'high' ? 'high' : 'low';
  return { text, nextStep: null, verdict: { kind: 'refute', confidence, verdict } };
}
