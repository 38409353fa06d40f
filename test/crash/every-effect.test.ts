import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Effect } from '../../workflows/core/tools.ts';
import { callTools, type Reply, say } from '../../testing/index.ts';
import { type Forge, startForge } from '../support/forge.ts';
import { type KeyedStore, startKeyedStore } from '../support/keyed-store.ts';
import { Crowd, type Member } from './crowd.ts';
import type { Boundary, BoundaryName } from './kill-at.ts';
import { compareEvents, compareRequests, readWorld } from './world.ts';

const LIMIT_MS = 300_000;

/**
 * Six tools, all four effects: the step in which each is called, what its mark in the ledger has that no other's has,
 * and the file that it puts in its place.
 */
const TOOLS = {
  read_file: { step: 0, effect: 'none' },
  write_file: { step: 1, effect: 'idempotent', begun: 'new.txt', file: 'made/new.txt' },
  http_request: { step: 2, effect: 'keyed' },
  edit_file: { step: 3, effect: 'once', begun: 'list.txt', file: 'list.txt' },
  open_pull_request: { step: 4, effect: 'once', begun: '"head":' },
  list_files: { step: 5, effect: 'none' },
} as const satisfies Record<string, ToolOfTest>;
type ToolName = keyof typeof TOOLS;
interface ToolOfTest {
  readonly step: number;
  readonly effect: Effect;
  readonly begun?: string;
  readonly file?: string;
}

function script(storeUrl: string, name: string): readonly Reply[] {
  const args: Readonly<Record<ToolName, object>> = {
    read_file: { path: 'list.txt' },
    write_file: { path: 'made/new.txt', content: 'written\n' },
    http_request: { url: storeUrl, method: 'POST', body: JSON.stringify({ of: name }) },
    edit_file: { path: 'list.txt', old_string: 'END\n', new_string: 'line\nEND\n' },
    open_pull_request: { repo: 'acme/app', head: name, title: 'The change' },
    list_files: {},
  };
  const calls = Object.entries(args).map(([tool, input]) => callTools([{ name: tool, arguments: input }]));
  return [...calls, say('All six are done.')];
}

interface Chain {
  readonly name: string;
  readonly deaths: readonly Boundary[];
}

/**
 * Every commit of the life of each call, in the order in which they come up when the worker before has died, cut
 * into chains of at most three: a round of deaths is mostly waiting for dead heartbeats, however many die in it.
 */
const CHAINS: readonly Chain[] = [
  ...(['before', 'after'] as const).flatMap((when) =>
    (Object.keys(TOOLS) as ToolName[]).flatMap((tool) => chainsOf(when, tool)),
  ),
  {
    name: 'around the last sample and the end',
    deaths: [
      { when: 'before', at: 'closeSample', having: '"step":6,' },
      { when: 'before', at: 'writeEnd' },
      { when: 'after', at: 'writeEnd' },
    ],
  },
];

function chainsOf(when: Boundary['when'], tool: ToolName): readonly Chain[] {
  const { step, effect, begun, file }: ToolOfTest = TOOLS[tool];
  const at = (name: BoundaryName, having?: string): Boundary => ({ when, at: name, ...(having && { having }) });
  const opened = at('openSample', `"step":${step},`);
  const closed = at('closeSample', `"step":${step},`);
  const finished = at('finishCall', `"tool":"${tool}"`);
  const renamed = file ? [at('rename', file)] : [];
  if (effect === 'none') return [{ name: `${when} each commit of ${tool}`, deaths: [opened, closed, finished] }];
  // Nothing is lost until the call was begun; then one that has begun is told to be lost, and settled where it must be.
  const lost = [at('recordLost'), ...(effect === 'once' ? [at('recordSettled')] : [])];
  const [first, second] =
    when === 'before'
      ? [
          [opened, closed, at('startEffect')],
          [finished, ...lost],
        ]
      : [
          [opened, closed, finished],
          // Without details its mark looks like any other's: it is the next one after its sample.
          begun ? [at('startEffect', begun), ...lost] : [closed, at('startEffect'), ...lost],
        ];
  return [
    { name: `${when} ${told(first)} of ${tool}`, deaths: first },
    { name: `${when} ${told(second)} of ${tool}`, deaths: second },
    ...(file ? [{ name: `${when} rename of ${tool}`, deaths: renamed }] : []),
  ];
}

function told(deaths: readonly Boundary[]): string {
  return deaths.map(({ at }) => at).join(', ');
}

let forge: Forge;
let store: KeyedStore;
let crowd: Crowd;
let undisturbed: Left;
const members = new Map<Chain, Member>();
beforeAll(async () => {
  [forge, store] = await Promise.all([startForge(), startKeyedStore()]);
  const ours = { url: forge.url, canLookUp: true, settleAfterMs: 500, requestMs: 5_000 };
  crowd = await Crowd.open({ forge: ours, storeUrl: store.url });
  const joined = () => crowd.join('alone', (name) => script(store.url, name));
  const alone = await joined();
  for (const chain of CHAINS) members.set(chain, await joined());
  await crowd.play(new Map([[alone, []], ...[...members].map(([{ deaths }, member]) => [member, deaths] as const)]));
  undisturbed = await leftBy(alone, 0);
}, LIMIT_MS);
afterAll(async () => {
  crowd.provider.assertDone();
  await crowd.close();
  await Promise.all([forge.close(), store.close()]);
});

/** What a job leaves in the world, without what tells one from another. */
async function leftBy(member: Member, deaths: number) {
  await forge.idle(member.name);
  const world = await readWorld(member);
  compareEvents(world);
  compareRequests(world, { askedAgain: deaths });
  const plain = (text: string) => text.replace(/(#|\/pull\/|"n":)\d+/g, '$1N');
  const happened = (state: string | undefined) => (state === 'settled_done' ? 'succeeded' : (state ?? 'reads'));
  return {
    ends: world.turns.map((turn) => [turn.endReason, turn.endDetail, turn.endDecidedBy, turn.recordedBy, turn.endStep]),
    engine: world.engine,
    inputs: world.inputs.map(({ status }) => status),
    told: world.outbox.map(({ acknowledgedAt }) => acknowledgedAt !== null),
    files: world.files,
    entries: store.entries().filter((entry) => entry.includes(member.name)).length,
    pulls: forge.pulls(member.name).map(({ title }) => title),
    transcript: world.transcript
      .map((message) => [message.kind, 'text' in message ? plain(message.text) : ''])
      .slice(1),
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

it('a run that nobody disturbs leaves each effect once', () => {
  expect(undisturbed).toMatchObject({
    ends: [['COMPLETED', 'final_answer', 'model', 'turn', 6]],
    files: { 'list.txt': 'begin\nline\nEND\n', 'made/new.txt': 'written\n' },
    entries: 1,
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

it.for(CHAINS.map((chain) => [chain.name, chain] as const))(
  'the world ends the same, the worker killed %s',
  async ([, chain]) => {
    expect(await leftBy(members.get(chain) as Member, chain.deaths.length)).toEqual(undisturbed);
  },
);
