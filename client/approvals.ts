import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../activities/store/database.ts';
import { type Answered, answerApproval } from '../activities/store/answers.ts';
import { isSettled, openApprovals } from '../activities/store/approvals.ts';
import { newId } from '../activities/store/ids.ts';
import type { ApprovalAnswer, Asked } from '../activities/store/schema.ts';
import type { ClientEngine } from './engine.ts';
import { onStore } from './faults.ts';

/** A call that waits for a person, or whose outcome only a person can tell. Times are ISO. */
export interface OpenApproval {
  readonly id: string;
  readonly session: string;
  readonly turn: string;
  readonly asked: Asked;
  readonly openedAt: string;
  /** Null: its turn has ended over it, and it stays open. */
  readonly expiresAt: string | null;
}

export interface ApprovalReply {
  readonly answer: Exclude<ApprovalAnswer, 'expired'>;
  readonly by: string;
  /** JSON of the arguments to use instead; for `approved` only. */
  readonly editedArguments?: string | undefined;
  /** For `message`: what to tell the agent instead of an answer. For `happened`, `absent`, `again`: what to add. */
  readonly text?: string | undefined;
}

export type ApprovalAnswered =
  | { readonly kind: 'recorded' }
  /** The first answer stands, and is told again. */
  | { readonly kind: 'answered_before'; readonly answer: ApprovalAnswer; readonly by: string | null }
  | {
      readonly kind: 'stale';
      readonly why: 'expired' | 'turn_ended' | 'moved_on' | 'settled' | 'archived' | 'agent_ended';
    }
  /** It asks for something else: an outcome is answered `happened`, `absent` or `again`, and nothing else is. */
  | { readonly kind: 'misfit'; readonly asks: Asked['kind'] };

export interface ApprovalDeps {
  readonly db: Db;
  readonly engine: ClientEngine;
}

export async function listApprovals(db: Db, tenant: string): Promise<readonly OpenApproval[]> {
  const rows = await onStore(() => openApprovals(db, tenant));
  return rows.map((row) => ({
    id: row.id,
    session: row.session,
    turn: row.turn,
    asked: row.asked,
    openedAt: row.createdAt.toISOString(),
    expiresAt: row.openUntil?.toISOString() ?? null,
  }));
}

/**
 * Answers an approval. The row in the store is the decision, valid once; telling the turn only makes it quick,
 * and is made good by the sweeper. Null: there is no such approval.
 */
export async function replyToApproval(
  { db, engine }: ApprovalDeps,
  at: { readonly tenant: string; readonly approval: string },
  reply: ApprovalReply,
): Promise<ApprovalAnswered | null> {
  const { answer, by, editedArguments = null, text = null } = reply;
  const given = { answer, by, editedArguments, text, input: newId('in') };
  const answered = await onStore(() => answerApproval(db, at.tenant, at.approval, given));
  switch (answered.kind) {
    case 'unknown':
      return null;
    case 'recorded':
    case 'late':
      await tellAnswer({ db, engine }, answered);
      return { kind: 'recorded' };
    default:
      return answered;
  }
}

/** The word after the row: to the turn that waits, or to the session that is to go on. */
export async function tellAnswer({ db, engine }: ApprovalDeps, answered: Answered): Promise<void> {
  if (answered.kind === 'late') await engine.look(answered.session);
  if (answered.kind === 'recorded') await tell(db, engine, answered.turn, answered.approval);
}

const TELL = { everyMs: 100, atMostMs: 3_000 } as const;

/**
 * The question is in the store a moment before the turn knows that it waits: until then it refuses the word.
 * Past a few seconds the sweeper does it.
 */
async function tell(db: Db, engine: ClientEngine, turn: string, approval: string): Promise<void> {
  const giveUpAt = Date.now() + TELL.atMostMs;
  while (!(await engine.approvalAnswered(turn, approval))) {
    if (Date.now() > giveUpAt || (await onStore(() => isSettled(db, approval)))) return;
    await sleep(TELL.everyMs);
  }
}
