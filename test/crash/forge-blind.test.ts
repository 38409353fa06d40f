import { setTimeout as sleep } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { call, effect } from '../../activities/store/schema.ts';
import { callTools, hold, type Reply, say } from '../../testing/index.ts';
import type { EmbeddedServers } from '../../worker/embedded/contract.ts';
import { startEmbedded } from '../../worker/embedded/start.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { only } from '../support/engine-facts.ts';
import { type Forge, type ForgeFault, startForge } from '../support/forge.ts';
import { until } from '../support/until.ts';
import { makeTempHome } from '../worker/embedded/temp-home.ts';
import { Crowd, type Death, type Member } from './crowd.ts';
import type { Boundary } from './kill-at.ts';

const LIMIT_MS = 200_000;

/** Whether it opens one or not, the forge doesn't say; and it can't be asked. */
const FAULTS: readonly ForgeFault[] = [
  { kind: 'gateway', status: 504, commits: true },
  { kind: 'closes', commits: false },
  { kind: 'late', afterMs: POLICY.lease.holdMs + 1_000 },
];
const AGENTS = ['alone', 'watched'] as const;

/** Where the worker dies; the request is on its way, or has gone wrong, or was never sent though it was marked. */
const DEATHS: Readonly<Record<string, Boundary>> = {
  'killed before its mark': { when: 'before', at: 'startEffect' },
  'killed between mark and request': { when: 'after', at: 'startEffect' },
  'killed before it is known to be unknown': { when: 'before', at: 'recordSettled' },
  'killed after it is known to be unknown': { when: 'after', at: 'recordSettled' },
};

let forge: Forge;
let engine: EmbeddedServers;
const temp = makeTempHome();
beforeAll(async () => {
  forge = await startForge();
  engine = await startEmbedded({ home: temp.home, onProgress: () => {} });
});
afterAll(async () => {
  await forge.close();
  await engine.stop();
  temp.remove();
});

const opens = (name: string): readonly Reply[] => [
  callTools([{ name: 'open_pull_request', arguments: { repo: 'acme/app', head: name, title: 'The change' } }]),
  say('That is all.'),
];

/** Jobs with one fate: each fault, with somebody to be asked and without. */
interface Jobs {
  readonly fate: string;
  readonly members: readonly { readonly member: Member; readonly watched: boolean; readonly fault: ForgeFault }[];
}

async function jobs(crowd: Crowd, fate: string, released?: Promise<void>, faults = FAULTS): Promise<Jobs> {
  const members: Jobs['members'][number][] = [];
  for (const fault of faults) {
    for (const agent of AGENTS) {
      const member = await crowd.join(agent, (name) => {
        forge.forget(name);
        forge.fault(name, fault, released);
        return opens(name);
      });
      members.push({ member, fault, watched: agent === 'watched' });
    }
  }
  return { fate, members };
}

const arrived = ({ members }: Jobs) => Promise.all(members.map(({ member }) => forge.arrived(member.name)));

async function inCrowd(act: (crowd: Crowd) => Promise<void>, temporalAddress?: string): Promise<void> {
  const crowd = await Crowd.open({
    forge: { url: forge.url, canLookUp: false, settleAfterMs: 500, requestMs: 6_000 },
    ...(temporalAddress && { temporalAddress }),
  });
  try {
    await act(crowd);
    crowd.provider.assertDone();
  } finally {
    await crowd.close();
  }
}

async function question(crowd: Crowd, { session }: Member): Promise<string> {
  const open = async () => (await crowd.runs.approvals('default')).find((each) => each.session === session);
  return (await until('a person is asked', open, 120_000)).id;
}

/** What is known of the call of a turn that is over. */
async function facts({ house }: Crowd, { session, name }: Member) {
  const { db } = house.database;
  const [made] = await db
    .select()
    .from(call)
    .where(eq(call.turn, `${session}/1`));
  const [ledger] = await db
    .select()
    .from(effect)
    .where(eq(effect.turn, `${session}/1`));
  const events = await readEvents(db, session, 0, 1_000);
  const counts = (['call.started', 'effect.asked', 'call.finished', 'turn.ended'] as const).map(
    (kind) => `${kind} ${only(events, kind).length}`,
  );
  const settled = only(events, 'effect.settled').map(({ as, by }) => `${as} by ${by}`);
  return { posts: forge.posts(name), status: made?.status, state: ledger?.state, counts, settled };
}

const TOLD_ONCE = ['call.started 1', 'effect.asked 1', 'call.finished 1', 'turn.ended 1'];

/** One request at most was sent, a person is asked, and where nobody watches the turn has ended over it. */
async function check(crowd: Crowd, { fate, members }: Jobs, posts: 0 | 1): Promise<void> {
  await Promise.all(
    members.map(async ({ member, watched, fault }) => {
      const told = `${fate}, ${JSON.stringify(fault)}, ${watched ? 'watched' : 'alone'}`;
      const asked = await question(crowd, member);
      if (!watched) {
        expect(await crowd.ended(member), told).toMatchObject({
          endReason: 'INTERRUPTED',
          endDetail: 'unknown_outcome',
          recordedBy: 'recovery',
        });
      }
      // A second one that was sent too early would be opened now.
      await forge.idle(member.name);
      const opened = forge.pulls(member.name).length;
      expect(opened, told).toBe(posts === 0 || (fault.kind === 'closes' && !fault.commits) ? 0 : 1);
      if (watched) {
        const answer = opened === 1 ? 'happened' : 'absent';
        await crowd.runs.answer('default', asked, { answer, by: 'pat' });
        expect(await crowd.ended(member), told).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
      }
      const { settled, ...found } = await facts(crowd, member);
      const state = !watched ? 'unknown' : opened === 1 ? 'settled_done' : 'settled_absent';
      expect(found, told).toEqual({
        posts,
        status: !watched ? 'unknown_ends_turn' : opened === 1 ? 'ok' : 'error',
        state,
        counts: TOLD_ONCE,
      });
      expect(settled, told).toEqual(['unknown by reconcile', ...(watched ? [`${state} by person`] : [])]);
    }),
  );
}

it.concurrent(
  'the worker killed before, during and after the call, or alive, or the turn cancelled',
  {
    timeout: LIMIT_MS,
  },
  () =>
    inCrowd(async (crowd) => {
      const stop = hold();
      const killed = new Map<Jobs, Boundary>();
      for (const [fate, boundary] of Object.entries(DEATHS)) killed.set(await jobs(crowd, fate), boundary);
      const kept = await jobs(crowd, 'killed before its good answer is kept', undefined, [{ kind: 'none' }]);
      killed.set(kept, { when: 'before', at: 'finishCall' });
      const deaths = [...killed].flatMap(([{ members }, boundary]) =>
        members.map(({ member }): Death => [member, boundary]),
      );
      const first = await crowd.worker(deaths);
      crowd.bootNext();
      await crowd.standing(first, deaths);
      const during = await jobs(crowd, 'killed during the request', stop.released);
      await arrived(during);
      await first.kill();
      stop.release();

      const alive = await jobs(crowd, 'alive');
      const cancelling = hold();
      const cancelled = await jobs(crowd, 'cancelled', cancelling.released);
      await crowd.worker();
      await arrived(cancelled);
      await Promise.all(cancelled.members.map(({ member }) => crowd.runs.cancel('default', member.job, { by: 'pat' })));
      // The forge answers only then: a call that comes back before its cancel arrives has another status.
      const stopped = Promise.all(cancelled.members.map(({ member }) => crowd.ended(member)));
      void stopped.then(cancelling.release, cancelling.release);
      await Promise.all([
        ...[...killed.keys()].map((each) => check(crowd, each, each.fate.startsWith('killed between') ? 0 : 1)),
        check(crowd, during, 1),
        check(crowd, alive, 1),
        ...cancelled.members.map(async ({ member }) => {
          expect(await crowd.ended(member)).toMatchObject({ endReason: 'ABORTED', endDetail: 'user_cancel' });
          await stopped;
          await forge.idle(member.name);
          const { posts, status, state } = await facts(crowd, member);
          expect({ posts, status, state }).toEqual({ posts: 1, status: 'unknown', state: 'unknown' });
        }),
      ]);
    }),
);

it.concurrent('the engine killed during the call', { timeout: LIMIT_MS }, () =>
  inCrowd(async (crowd) => {
    const stop = hold();
    const during = await jobs(crowd, 'engine killed', stop.released);
    await crowd.worker();
    await arrived(during);
    const { temporal: before = 0 } = engine.pids();
    process.kill(before, 'SIGKILL');
    await until('the engine runs again', () => engine.pids().temporal !== before, 60_000);
    stop.release();
    await check(crowd, during, 1);
  }, engine.temporalAddress),
);

// Two attempts of each call alive at once: the first ones are frozen in the middle of their requests.
it.concurrent('two workers, one of them frozen past its lease and thawed after it', { timeout: LIMIT_MS }, () =>
  inCrowd(async (crowd) => {
    const stop = hold();
    const during = await jobs(crowd, 'frozen', stop.released);
    const frozen = await crowd.worker();
    crowd.bootNext();
    await arrived(during);
    frozen.signal('SIGSTOP');
    await crowd.worker();
    stop.release();
    await check(crowd, during, 1);
    frozen.signal('SIGCONT');
    await sleep(2_000);
    for (const { member } of during.members) {
      const { posts, counts } = await facts(crowd, member);
      expect([posts, counts]).toEqual([1, TOLD_ONCE]);
    }
  }),
);
