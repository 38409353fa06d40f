import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type ScriptedProvider, startScriptedProvider } from '../../testing/index.ts';
import type { EmbeddedServers } from '../../worker/embedded/contract.ts';
import { startEmbedded } from '../../worker/embedded/start.ts';
import { testDatabase } from '../support/database.ts';
import { type Forge, startForge } from '../support/forge.ts';
import { makeTempHome } from '../worker/embedded/temp-home.ts';
import { compiledProgram } from './compiled.ts';
import { DISTURBANCES, FAULTS, type Plan, play } from './forge-plan.ts';
import { ForgeRun, forgeRules } from './forge-run.ts';

const LIMIT_MS = 170_000;
const AT_ONCE = 8;
/** One more within a minute, and it counts as broken. */
const KILLS_OF_ONE_ENGINE = 5;

let provider: ScriptedProvider;
let forge: Forge;
beforeAll(async () => {
  provider = await startScriptedProvider({ expectKey: true, rules: forgeRules });
  forge = await startForge();
  compiledProgram();
});
afterAll(async () => {
  provider.assertDone();
  await provider.close();
  await forge.close();
});

async function inRun<T>(act: (run: ForgeRun) => Promise<T>, engine?: EmbeddedServers): Promise<T> {
  const { url: databaseUrl, close } = await testDatabase();
  await close();
  const servers = { temporalAddress: engine?.temporalAddress ?? inject('temporalAddress'), databaseUrl };
  const run = await ForgeRun.open({ forge, providerUrl: provider.baseUrl, servers, ...(engine && { engine }) });
  try {
    return await act(run);
  } finally {
    await run.close();
  }
}

/** One after the other, on engines of their own: whoever else shared one would be killed with it. */
async function killEngines(lane: (from: Plan[]) => (run: ForgeRun) => Promise<void>, plans: Plan[]): Promise<void> {
  while (plans.length > 0) {
    const from = plans.splice(0, KILLS_OF_ONE_ENGINE);
    await withEngine((engine) => inRun(lane(from), engine));
  }
}

async function withEngine(act: (engine: EmbeddedServers) => Promise<void>): Promise<void> {
  const temp = makeTempHome();
  const engine = await startEmbedded({ home: temp.home, onProgress: () => {} });
  try {
    await act(engine);
  } finally {
    await engine.stop();
    temp.remove();
  }
}

const killsEngine = ({ disturbance }: Plan) => disturbance.kind === 'engine_killed';

const name = ({ fault, disturbance }: Plan) => `${JSON.stringify(fault)}, ${JSON.stringify(disturbance)}`;

it('exactly one pull request, the worker alive, however the answer is lost', { timeout: LIMIT_MS }, () =>
  inRun(async (run) => {
    for (const fault of FAULTS) await play(run, { fault, disturbance: { kind: 'none' } });
  }),
);

// About a second of a processor for each run: a minute where two are free.
it('exactly one pull request, whatever happens: random runs', { timeout: 600_000 }, async () => {
  const seed = Number(process.env.FORGE_SEED ?? Math.floor(Math.random() * 2 ** 31));
  const count = Number(process.env.FORGE_RUNS ?? 50);
  console.log(`forge: ${count} runs, FORGE_SEED=${seed}`);
  const begun = Date.now();
  const random = randomOf(seed);
  const pick = <T>(from: readonly T[]) => from[Math.floor(random() * from.length)] as T;
  const plans = Array.from({ length: count }, (): Plan => ({ fault: pick(FAULTS), disturbance: pick(DISTURBANCES) }));
  const failures: string[] = [];
  const [killing, sparing] = [plans.filter(killsEngine), plans.filter((plan) => !killsEngine(plan))];
  const lane = (from: Plan[]) => async (run: ForgeRun) => {
    for (let plan = from.pop(); plan; plan = from.pop()) {
      const told = name(plan);
      await play(run, plan).catch((error: Error) => failures.push(`${told}: ${error.message}`));
    }
  };
  await Promise.all([killEngines(lane, killing), ...Array.from({ length: AT_ONCE - 1 }, () => inRun(lane(sparing)))]);
  console.log(`forge: ${count} runs in ${Math.round((Date.now() - begun) / 1_000)} s`);
  expect(failures, `FORGE_SEED=${seed}`).toEqual([]);
});

// Mulberry32: small, and the same everywhere.
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
