import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { call, effect } from '../../activities/store/schema.ts';
import type { OpenApproval } from '../../client/approvals.ts';
import { callTools, hold, type Reply, say } from '../../testing/index.ts';
import { only } from '../support/engine-facts.ts';
import { type Forge, startForge } from '../support/forge.ts';
import { until } from '../support/until.ts';
import { Crowd, type Death, type Member } from './crowd.ts';
import type { Boundary } from './kill-at.ts';
import { DONE, HOLD_UNDO, UNDONE } from './undoable.ts';

const LIMIT_MS = 240_000;

type Kill = { readonly at: Boundary } | { readonly at: 'in the middle' };

const at = (when: Boundary['when'], name: Boundary['at']): Kill => ({ at: { when, at: name } });
const inTheMiddle: Kill = { at: 'in the middle' };
const nameOf = (kill: Kill) => (kill.at === 'in the middle' ? kill.at : `${kill.at.when} ${kill.at.at}`);

/** Where the worker dies while the next turn makes a call that was approved late. */
const CARRIED = [
  at('before', 'promote'),
  at('before', 'startEffect'),
  at('after', 'startEffect'),
  inTheMiddle,
  at('before', 'finishCall'),
  at('after', 'finishCall'),
].map((kill) => ({ kill, name: nameOf(kill) }));

/** Where it dies while a cancelled call is taken back; how often that then has happened, and what the ledger says. */
const UNDOS = (
  [
    ['undo_once', at('before', 'startUndo'), 1, 'undone'],
    ['undo_once', at('after', 'startUndo'), 0, 'unknown'],
    ['undo_once', inTheMiddle, 1, 'unknown'],
    ['undo_once', at('before', 'finishUndo'), 1, 'unknown'],
    ['undo_once', at('after', 'finishUndo'), 1, 'undone'],
    ['undo_again', at('before', 'startUndo'), 1, 'undone'],
    ['undo_again', at('after', 'startUndo'), 1, 'undone'],
    ['undo_again', inTheMiddle, 2, 'undone'],
    ['undo_again', at('before', 'finishUndo'), 2, 'undone'],
    ['undo_again', at('after', 'finishUndo'), 1, 'undone'],
  ] as const
).map(([tool, kill, times, as]) => ({ tool, kill, times, as, name: nameOf(kill) }));

let forge: Forge;
let crowd: Crowd;
let approved: Member;
let declined: Member;
const carried = new Map<(typeof CARRIED)[number], Member>();
const undone = new Map<(typeof UNDOS)[number], Member>();

const opens = (name: string): readonly Reply[] => [
  callTools([{ name: 'open_pull_request', arguments: { repo: 'acme/app', head: name, title: 'The change' } }]),
  say('Done.'),
];
const acts = (tool: string) => () => [callTools([{ name: tool, arguments: {} }])];

async function asked({ session }: Member): Promise<OpenApproval> {
  const open = async () => (await crowd.runs.approvals('default')).find((each) => each.session === session);
  return await until('a person is asked', open, 90_000);
}

async function answer(member: Member, how: 'approved' | 'rejected'): Promise<void> {
  const { id } = await asked(member);
  expect(await crowd.runs.answer('default', id, { answer: how, by: 'pat' })).toEqual({ kind: 'recorded' });
}

function deathsOf(members: ReadonlyMap<{ readonly kill: Kill }, Member>): Death[] {
  return [...members].flatMap(([{ kill }, member]): Death[] =>
    kill.at === 'in the middle' ? [] : [[member, kill.at]],
  );
}

// One worker is lost in all of them at once, and one more takes over.
beforeAll(async () => {
  forge = await startForge();
  crowd = await Crowd.open({ forge: { url: forge.url, canLookUp: true, settleAfterMs: 500, requestMs: 25_000 } });
  approved = await crowd.join('asks', opens);
  declined = await crowd.join('asks', opens);
  for (const each of CARRIED) carried.set(each, await crowd.join('blocks', opens));
  const firstTurns = await crowd.worker();
  crowd.bootNext();
  await Promise.all([asked(approved), asked(declined), ...[...carried.values()].map((each) => crowd.ended(each))]);
  await firstTurns.kill();

  // A call that its worker lost would be settled before anybody cancels it: these begin with the next one.
  for (const each of UNDOS) undone.set(each, await crowd.join('alone', acts(each.tool)));
  const stop = hold();
  const deaths = [...deathsOf(carried), ...deathsOf(undone)];
  const middleCarried = [...carried].filter(([{ kill }]) => kill === inTheMiddle).map(([, member]) => member);
  const middleUndone = [...undone].filter(([{ kill }]) => kill === inTheMiddle).map(([, member]) => member);
  for (const { name } of middleCarried) forge.fault(name, { kind: 'held', released: stop.released });
  for (const { workspace } of middleUndone) writeFileSync(join(workspace, HOLD_UNDO), '');
  const dying = await crowd.worker(deaths);
  crowd.bootNext();
  await Promise.all([...carried.values()].map((each) => answer(each, 'approved')));
  await Promise.all(middleCarried.map(({ name }) => until('its request arrives', () => forge.posts(name) > 0, 90_000)));
  await Promise.all(
    [...undone.values()].map((each) => until('it has acted', () => existsSync(join(each.workspace, DONE)), 90_000)),
  );
  await Promise.all([...undone.values()].map(({ job }) => crowd.runs.cancel('default', job, { by: 'pat' })));
  await crowd.standing(dying, deaths);
  await Promise.all(
    middleUndone.map(({ workspace }) => until('it is taken back', () => existsSync(join(workspace, UNDONE)), 90_000)),
  );
  await dying.kill();

  // Nobody works when these are answered.
  await answer(approved, 'approved');
  await answer(declined, 'rejected');
  stop.release();
  for (const { workspace } of middleUndone) rmSync(join(workspace, HOLD_UNDO));
  await crowd.worker();
  await Promise.all([
    ...[approved, declined, ...undone.values()].map((each) => crowd.ended(each)),
    ...[...carried.values()].map((each) => crowd.ended(each, 2)),
  ]);
}, LIMIT_MS);
afterAll(async () => {
  crowd.provider.assertDone();
  await crowd.close();
  await forge.close();
});

/** The one call of a member: its status, its state in the ledger, and how often it was begun, lost and finished. */
async function callOf({ session, name }: Member, n = 1) {
  const { db } = crowd.house.database;
  const [made] = await db
    .select()
    .from(call)
    .where(eq(call.turn, `${session}/1`));
  const [ledger] = await db
    .select()
    .from(effect)
    .where(eq(effect.turn, `${session}/${n}`));
  const events = await readEvents(db, session, 0, 1_000);
  return {
    status: made?.status,
    state: ledger?.state,
    finished: only(events, 'call.finished').length,
    posts: forge.posts(name),
    pulls: forge.pulls(name).length,
  };
}

describe('an approval that waits while the worker is killed', () => {
  it('and is given: the call is made, once', async () => {
    expect(await crowd.ended(approved)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
    expect(await callOf(approved)).toEqual({ status: 'ok', state: 'succeeded', finished: 1, posts: 1, pulls: 1 });
  });

  it('and is declined: the call was never made', async () => {
    expect(await crowd.ended(declined)).toMatchObject({ endReason: 'ABORTED', endDetail: 'permission_rejected' });
    expect(await callOf(declined)).toMatchObject({ posts: 0, pulls: 0, state: 'settled_absent' });
    const events = await readEvents(crowd.house.database.db, declined.session, 0, 1_000);
    expect(only(events, 'call.started')).toEqual([]);
  });
});

// Trap: a call of an earlier turn, under its old key: who makes it again must know that it was made.
it.for(CARRIED)('a late yes makes its call in the next turn exactly once, killed $name', async (each) => {
  const member = carried.get(each) as Member;
  expect(await crowd.ended(member, 2)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
  const found = await callOf(member, 2);
  expect(['succeeded', 'settled_done']).toContain(found.state);
  expect(found).toMatchObject({ finished: 1, posts: 1, pulls: 1 });
});

it.for(UNDOS)('$tool killed $name: it has happened $times times, and the ledger says $as', async (each) => {
  const { session, workspace } = undone.get(each) as Member;
  expect(await crowd.ended(undone.get(each) as Member)).toMatchObject({
    endReason: 'ABORTED',
    endDetail: 'user_cancel',
  });
  const file = join(workspace, UNDONE);
  expect(existsSync(file) ? readFileSync(file, 'utf8') : '').toBe('undone\n'.repeat(each.times));
  expect(readFileSync(join(workspace, DONE), 'utf8')).toBe('done\n');
  const { db } = crowd.house.database;
  const [ledger] = await db
    .select()
    .from(effect)
    .where(eq(effect.turn, `${session}/1`));
  expect([ledger?.state, ledger?.undo]).toEqual(['settled_done', each.as]);
  const told = only(await readEvents(db, session, 0, 1_000), 'effect.undone');
  expect(told.map(({ as }) => as)).toEqual([each.as]);
});
