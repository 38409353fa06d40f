import { eq } from 'drizzle-orm';
import type { Db } from '../../../activities/store/database.ts';
import { lockTurn } from '../../../activities/store/fence.ts';
import type { CancelRequest } from '../../../activities/store/cancels.ts';
import { openSample } from '../../../activities/store/samples.ts';
import { turn } from '../../../activities/store/schema.ts';
import { type TurnEnding, writeEnd } from '../../../activities/store/turn-end.ts';
import type { End } from '../../../workflows/core/ends.ts';
import { id, linkOn, oneToken, type SeededTurn, user } from './seed.ts';

export const COMPLETED: End = {
  reason: 'COMPLETED',
  detail: 'final_answer',
  decidedBy: 'model',
  signal: { name: 'model_stop' },
  phase: 'ending',
};
export const CANCELLED: End = {
  reason: 'ABORTED',
  detail: 'user_cancel',
  decidedBy: 'user',
  signal: { name: 'cancel_request' },
  phase: 'tools',
};

/** Ends a turn as its own run does. */
export async function end(db: Db, on: SeededTurn, how: End, change: Partial<TurnEnding> = {}): Promise<void> {
  const author = { by: null, why: null };
  const ending: TurnEnding = {
    end: how,
    step: 3,
    recordedBy: 'turn',
    runningMs: 0,
    author,
    owed: [],
    batchEnd: null,
    chain: [],
    tokensOf: oneToken,
    ...change,
  };
  await writeEnd(db, ending, (tx) => lockTurn(tx, on.fence));
}

export const row = async (db: Db, on: SeededTurn) => (await db.select().from(turn).where(eq(turn.id, on.turn)))[0]!;

/** Puts an input on the turn's chain, as a sample's first commit does. */
export async function join(db: Db, on: SeededTurn, inputId: string): Promise<string> {
  const { head } = await row(db, on);
  const link = linkOn(head, user('text', inputId));
  const joined = [{ input: inputId, message: link.hash }];
  await openSample(db, {
    fence: on.fence,
    session: on.session,
    sample: id(),
    attempt: id('att'),
    step: 0,
    request: null,
    base: head,
    links: [link],
    joined,
    events: [],
  });
  return link.hash;
}

/** A person's request to cancel, changed where the test says so. */
export function asked(on: SeededTurn, change: Partial<CancelRequest> = {}): CancelRequest {
  return {
    turn: on.turn,
    id: id('can'),
    by: 'ann',
    why: 'enough',
    decidedBy: 'user',
    detail: 'user_cancel',
    ...change,
  };
}
