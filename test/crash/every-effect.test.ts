import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { callTools, type Reply, say } from '../../testing/index.ts';
import { startForge } from '../support/forge.ts';
import { startKeyedStore } from '../support/keyed-store.ts';
import { compiledProgram } from './compiled.ts';
import { CrashRun, type CrashProvider, startCrashProvider } from './crash-run.ts';
import type { Boundary, BoundaryName } from './kill-at.ts';
import { compareEvents, compareRequests, readWorld } from './world.ts';

// Most of it is waiting for dead heartbeats; the rest is a dozen workers that boot side by side.
const LIMIT_MS = 600_000;

let provider: CrashProvider;
let undisturbed: Left;
beforeAll(async () => {
  provider = await startCrashProvider();
  compiledProgram();
  undisturbed = await runWith([]);
}, LIMIT_MS);
afterAll(async () => {
  provider.provider.assertDone();
  await provider.provider.close();
});

/** Six calls: two that read, one idempotent, one keyed, and two that must not happen twice. */
function script(branch: string, storeUrl: string): readonly Reply[] {
  const calls: readonly (readonly [string, object])[] = [
    ['read_file', { path: 'list.txt' }],
    ['write_file', { path: 'made/new.txt', content: 'written\n' }],
    ['http_request', { url: storeUrl, method: 'POST', body: '{"amount":1}' }],
    ['edit_file', { path: 'list.txt', old_string: 'END\n', new_string: 'line\nEND\n' }],
    ['open_pull_request', { repo: 'acme/app', head: branch, title: 'The change' }],
    ['list_files', {}],
  ];
  return [...calls.map(([name, args]) => callTools([{ name, arguments: args }])), say('All six are done.')];
}

/** What a run leaves in the world, without what tells one run from another. */
async function leftBy(run: CrashRun, remote: { readonly forge: Forge; readonly store: Store }, deaths: number) {
  const world = await readWorld(run);
  compareEvents(world);
  compareRequests(world, { askedAgain: deaths });
  const plain = (text: string) => text.replaceAll(remote.store.url, 'STORE').replaceAll(run.name, 'BRANCH');
  const happened = (state: string | undefined) => (state === 'settled_done' ? 'succeeded' : (state ?? 'reads'));
  return {
    ends: world.turns.map((turn) => [turn.endReason, turn.endDetail, turn.endDecidedBy, turn.recordedBy, turn.endStep]),
    engine: world.engine,
    inputs: world.inputs.map(({ status }) => status),
    told: world.outbox.map(({ acknowledgedAt }) => acknowledgedAt !== null),
    files: world.files,
    entries: remote.store.entries(),
    pulls: remote.forge.pulls(run.name).map(({ title }) => title),
    transcript: world.transcript.map((message) => [message.kind, 'text' in message ? plain(message.text) : '']),
    calls: world.calls.map(({ key, tool, effect, status }) => [
      tool,
      effect,
      status,
      happened(world.effects.find((row) => row.key === key)?.state),
    ]),
    // Which of them there are and in which order; attempts differ, what they came to does not.
    events: world.events
      .map(({ event }) => event.kind)
      .filter((kind) => !/^(sample|stream|attempt|effect)\.|^call\.started$/.test(kind)),
    deltas: world.deltas.length,
    orphans: world.orphans,
  };
}

type Left = Awaited<ReturnType<typeof leftBy>>;
type Forge = Awaited<ReturnType<typeof startForge>>;
type Store = Awaited<ReturnType<typeof startKeyedStore>>;

/** The whole job, by one worker after the other: each dies at its boundary, the last one lives. */
async function runWith(deaths: readonly Boundary[]): Promise<Left> {
  const [forge, store] = await Promise.all([startForge(), startKeyedStore()]);
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  const remotes = { forgeUrl: forge.url, storeUrl: store.url };
  const run = await CrashRun.prepare({ provider, servers, remotes });
  provider.play(run.name, script(run.name, store.url));
  try {
    await run.submit();
    for (const death of deaths) await run.dies(run.worker(death), death);
    run.worker();
    await run.ended();
    await forge.idle(run.name);
    return await leftBy(run, { forge, store }, deaths.length);
  } finally {
    await run.close();
    await Promise.all([forge.close(), store.close()]);
  }
}

const at = (when: Boundary['when'], name: BoundaryName, having?: string): Boundary => ({
  when,
  at: name,
  ...(having === undefined ? {} : { having }),
});

/**
 * Every commit of the life of a call to a remote side, in the order in which they come up when the worker before
 * has died. Before: nothing is lost until the call was begun, so that comes last. After: it is lost at once.
 */
function lifeOf(when: Boundary['when'], tool: string, step: number): readonly Boundary[] {
  const sampled = [at(when, 'openSample', `"step":${step},`), at(when, 'closeSample', `"step":${step},`)];
  const finished = at(when, 'finishCall', `"tool":"${tool}"`);
  const lost = [at(when, 'recordLost'), ...(tool === 'open_pull_request' ? [at(when, 'recordSettled')] : [])];
  const started = at(when, 'startEffect');
  return when === 'before' ? [...sampled, started, finished, ...lost] : [...sampled, started, ...lost, finished];
}

/** Through all six, one commit of each. Each commit of calls on files alone: worker-killed.test.ts. */
function throughAll(when: Boundary['when']): readonly Boundary[] {
  return [
    at(when, 'finishCall', '"tool":"read_file"'),
    at(when, 'rename', 'new.txt'),
    at(when, 'finishCall', '"tool":"http_request"'),
    at(when, 'rename', 'list.txt'),
    at(when, 'recordSettled'),
    at(when, 'startEffect'),
    at(when, 'finishCall', '"tool":"list_files"'),
    at(when, 'writeEnd'),
  ];
}

const CHAINS: readonly (readonly [string, readonly Boundary[]])[] = (['before', 'after'] as const).flatMap((when) => [
  [`${when} each commit of the keyed call`, lifeOf(when, 'http_request', 2)] as const,
  [`${when} each commit of the call that must not happen twice`, lifeOf(when, 'open_pull_request', 4)] as const,
  [`${when} one commit of each of the six`, throughAll(when)] as const,
]);

it('a run that nobody disturbs leaves each effect once', () => {
  expect(undisturbed).toMatchObject({
    ends: [['COMPLETED', 'final_answer', 'model', 'turn', 6]],
    files: { 'list.txt': 'begin\nline\nEND\n', 'made/new.txt': 'written\n' },
    entries: ['{"amount":1}'],
    pulls: ['The change'],
    calls: [
      ['read_file', 'none', 'ok', 'reads'],
      ['write_file', 'idempotent', 'ok', 'succeeded'],
      ['http_request', 'keyed', 'ok', 'succeeded'],
      ['edit_file', 'once', 'ok', 'succeeded'],
      ['open_pull_request', 'once', 'ok', 'succeeded'],
      ['list_files', 'none', 'ok', 'reads'],
    ],
    orphans: [],
  });
});

it.concurrent.for(CHAINS)(
  'the world ends the same, the worker killed %s',
  { timeout: LIMIT_MS },
  async ([, deaths]) => {
    expect(await runWith(deaths)).toEqual(undisturbed);
  },
);
