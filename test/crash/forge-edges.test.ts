import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { hold, type ScriptedProvider, startScriptedProvider } from '../../testing/index.ts';
import type { EmbeddedServers } from '../../worker/embedded/contract.ts';
import { startEmbedded } from '../../worker/embedded/start.ts';
import { testDatabase } from '../support/database.ts';
import { type Forge, type ForgeFault, startForge } from '../support/forge.ts';
import { until } from '../support/until.ts';
import { makeTempHome } from '../worker/embedded/temp-home.ts';
import { compiledProgram } from './compiled.ts';
import { check, of } from './forge-plan.ts';
import { ForgeRun, forgeRules } from './forge-run.ts';

const LIMIT_MS = 170_000;

let provider: ScriptedProvider;
let forge: Forge;
let engine: EmbeddedServers;
const temp = makeTempHome();
beforeAll(async () => {
  provider = await startScriptedProvider({ expectKey: true, rules: forgeRules });
  forge = await startForge();
  // An engine of its own: whoever else shared it would be killed with it.
  engine = await startEmbedded({ home: temp.home, onProgress: () => {} });
  compiledProgram();
});
afterAll(async () => {
  provider.assertDone();
  await provider.close();
  await forge.close();
  await engine.stop();
  temp.remove();
});

async function open(
  options: { readonly canLookUp?: boolean; readonly attended?: boolean; readonly engine?: EmbeddedServers } = {},
): Promise<ForgeRun> {
  const { canLookUp = true, attended = false, engine: own } = options;
  const temporalAddress = own?.temporalAddress ?? inject('temporalAddress');
  const { url: databaseUrl, close } = await testDatabase();
  await close();
  return await ForgeRun.open({
    forge,
    providerUrl: provider.baseUrl,
    canLookUp,
    attended,
    servers: { temporalAddress, databaseUrl },
    ...(own && { engine: own }),
  });
}

async function inRun(run: ForgeRun, act: (run: ForgeRun) => Promise<void>): Promise<void> {
  try {
    await act(run);
  } finally {
    await run.close();
  }
}

describe.concurrent('exactly one pull request', () => {
  // Two attempts of one call alive at once: the first one is frozen in the middle of its request.
  it('a worker frozen past its lease while the forge works, and thawed after it', { timeout: LIMIT_MS }, async () =>
    inRun(await open(), async (run) => {
      const stop = hold();
      const fault: ForgeFault = { kind: 'held', released: stop.released };
      const { arrived } = run.begin(fault);
      await run.workers(2);
      await run.submit();
      await arrived;
      const frozen = await run.holder();
      frozen.signal('SIGSTOP');
      await until('the other takes over', async () => of(await run.events(), 'attempt.lost').length > 0, 90_000);
      // It has looked, or does so now, and found nothing.
      await sleep(500);
      stop.release();
      await check(run, { fault, disturbance: { kind: 'none' } });
      frozen.signal('SIGCONT');
      await sleep(2_000);
      const { effect, events } = await run.ended();
      expect([run.forge.posts(run.name), effect?.state]).toEqual([1, 'settled_done']);
      expect(of(events, 'call.finished')).toHaveLength(1);
      // The first attempt lived: only the end of its lease said that it may not act any more.
      expect(await run.takenOverAt()).toBeGreaterThanOrEqual(effect?.leaseUntil?.getTime() ?? Infinity);
    }),
  );

  it('the engine killed during the call', { timeout: LIMIT_MS }, async () => {
    const stop = hold();
    const faults: readonly ForgeFault[] = [
      { kind: 'held', released: stop.released },
      { kind: 'gateway', status: 504, commits: true },
      { kind: 'closes', commits: false },
    ];
    const runs = await Promise.all(faults.map(() => open({ engine })));
    try {
      for (const run of runs) await run.workers();
      await Promise.all(
        runs.map(async (run, n) => {
          const { arrived } = run.begin(faults[n] ?? { kind: 'none' });
          await run.submit();
          await arrived;
        }),
      );
      await runs[0]?.killEngine();
      stop.release();
      for (const [n, run] of runs.entries()) await check(run, { fault: faults[n]!, disturbance: { kind: 'none' } });
    } finally {
      for (const run of runs) await run.close();
    }
  });

  // The engine gives a cancelled call to nobody else, so the turn ends first and the truth comes later.
  it(
    'cancelled during the call, and the worker killed on top: the ledger learns of it after the end',
    { timeout: LIMIT_MS },
    async () =>
      inRun(await open(), async (run) => {
        const stop = hold();
        const { arrived } = run.begin({ kind: 'held', released: stop.released });
        await run.workers();
        await run.submit();
        await arrived;
        const holder = await run.holder();
        holder.signal('SIGSTOP');
        await run.cancel();
        await holder.kill();
        await run.workers();
        stop.release();
        const { turn } = await run.ended();
        expect(turn).toMatchObject({ endReason: 'ABORTED', endDetail: 'user_cancel' });
        expect(await run.resultText()).not.toMatch(/^Not started/);
        await until('the ledger knows', async () => (await run.ended()).effect?.state === 'settled_done', 90_000);
        expect([run.forge.posts(run.name), run.forge.pulls(run.name).length]).toEqual([1, 1]);
      }),
  );

  // Nobody can say, and somebody watches: they are asked, their word decides, and only that sends it again.
  it(
    'a forge that can’t look up, and a person who is asked, over killed workers: never two',
    {
      timeout: LIMIT_MS,
    },
    async () =>
      inRun(await open({ canLookUp: false, attended: true }), async (run) => {
        const asked = () => until('a person is asked', () => run.question(), 90_000);

        // The worker dies while the question is open; it is answered while none is there.
        run.begin({ kind: 'gateway', status: 504, commits: true });
        const first = await run.workers();
        await run.submit();
        await asked();
        await first.kill();
        expect(await run.answer('happened')).toEqual({ kind: 'recorded' });
        await run.workers();
        const happened = await run.ended();
        expect(happened.turn).toMatchObject({ endReason: 'COMPLETED' });
        expect([happened.call?.status, happened.effect?.state]).toEqual(['ok', 'settled_done']);
        expect([run.forge.posts(run.name), run.forge.pulls(run.name).length]).toEqual([1, 1]);

        // The next worker finds the open question, and sends nothing before it is answered.
        run.begin({ kind: 'closes', commits: false });
        await run.submit();
        await asked();
        await (await run.workers()).kill();
        await run.workers();
        expect([run.forge.posts(run.name), run.forge.pulls(run.name).length]).toEqual([1, 0]);
        await run.answer('again');
        const again = await run.ended();
        expect(again.turn).toMatchObject({ endReason: 'COMPLETED' });
        expect([again.call?.status, again.effect?.state]).toEqual(['ok', 'succeeded']);
        expect([run.forge.posts(run.name), run.forge.pulls(run.name).length]).toEqual([2, 1]);
        expect(of(again.events, 'effect.asked')).toHaveLength(1);

        // It dies as it sends again: that is one more question, and never a third request.
        run.begin({ kind: 'closes', commits: false });
        await run.submit();
        const { id } = await asked();
        await (await run.workers()).arm({ when: 'before', at: 'finishCall' });
        const holder = await run.holder();
        await run.answer('again');
        await holder.died;
        await run.workers();
        await until('the next question', async () => ![id, undefined].includes((await run.question())?.id), 90_000);
        await run.answer('happened');
        const lost = await run.ended();
        expect(lost.turn).toMatchObject({ endReason: 'COMPLETED' });
        expect([lost.call?.status, lost.effect?.state]).toEqual(['ok', 'settled_done']);
        expect([run.forge.posts(run.name), run.forge.pulls(run.name).length]).toEqual([2, 1]);
        expect(of(lost.events, 'attempt.lost')).toHaveLength(1);
        expect(of(lost.events, 'effect.asked')).toHaveLength(2);
      }),
  );
});
