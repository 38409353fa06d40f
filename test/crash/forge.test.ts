import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type ScriptedProvider, startScriptedProvider } from '../../testing/index.ts';
import { testDatabase } from '../support/database.ts';
import { type Forge, startForge } from '../support/forge.ts';
import { compiledProgram } from './compiled.ts';
import { DISTURBANCES, FAULTS, type Plan, play } from './forge-plan.ts';
import { ForgeRun, forgeRules } from './forge-run.ts';

const LIMIT_MS = 170_000;
const AT_ONCE = 8;

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

const servers = async () => {
  const database = await testDatabase();
  await database.close();
  return { temporalAddress: inject('temporalAddress'), databaseUrl: database.url };
};

async function inRun<T>(act: (run: ForgeRun) => Promise<T>, canLookUp = true): Promise<T> {
  const options = { forge, providerUrl: provider.baseUrl, canLookUp, servers: await servers() };
  const run = await ForgeRun.open(options);
  try {
    return await act(run);
  } finally {
    await run.close();
  }
}

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
  const lane = (run: ForgeRun) => async () => {
    for (let plan = plans.pop(); plan; plan = plans.pop()) {
      const told = name(plan);
      await play(run, plan).catch((error: Error) => failures.push(`${told}: ${error.message}`));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, () => inRun((run) => lane(run)())));
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
