import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { and, eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { input, turn, usage } from '../../activities/store/schema.ts';
import {
  callTools,
  type ChatRequest,
  countToolResults,
  hold,
  paced,
  type Reply,
  say,
  status,
} from '../../testing/index.ts';
import type { RecordedEvent } from '../../workflows/core/journal.ts';
import { turnState, turnWorkflowId } from '../../workflows/messages.ts';
import { cancelTurn, closedStatus, only, turnHandle } from '../support/engine-facts.ts';
import { billed, isSummary, step } from '../support/long-talk.ts';
import { note } from '../support/numbers.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const MARKS = { cancelled: 'pawl-mark-cancelled', terminated: 'pawl-mark-terminated' } as const;
type Name = keyof typeof MARKS;

/** What each member does when its root is stopped, in the order in which the root starts them. */
const PHASES = ['sampling', 'gate', 'tools', 'waiting', 'resting', 'compacting', 'ending', 'cleanup'] as const;
type Phase = (typeof PHASES)[number];

/** Below the root: eight, one in each phase; below each of them one in another phase; below one of those one more. */
const PATHS: readonly (readonly Phase[])[] = PHASES.map((phase, n) => {
  const below = PHASES[(n + 3) % PHASES.length] ?? 'sampling';
  return below === 'resting' ? [phase, below, 'tools'] : [phase, below];
});
const MEMBERS = PATHS.flatMap((path) => path).length;

/** A member's own phase comes first in what it is told; the others are for those below it. */
const TOLD = new RegExp(`family (${Object.keys(MARKS).join('|')}): ([a-z/]+)`);

const AGENTS: Partial<Record<Phase, string>> = { gate: 'asks', compacting: 'small' };

/** Leases, by how many a member has below it: what it is to do, and theirs. */
const LEASES = [90_000, 190_000, 230_000];

function spawn(name: string, path: readonly Phase[], background: boolean) {
  const [own = 'sampling'] = path;
  const maxTokens = LEASES[path.length - 1];
  const prompt = `family ${name}: ${path.join('/')}`;
  return { name: 'spawn_agent', arguments: { agent: AGENTS[own] ?? 'tester', prompt, background, maxTokens } };
}

function play(request: ChatRequest): Reply {
  const [, name, told = ''] = TOLD.exec(JSON.stringify(request.messages)) ?? [];
  if (told === 'root') return rootPlay(String(name));
  const [own, ...below] = told.split('/') as Phase[];
  const isToSpawn = below.length > 0 && countToolResults(request) === 0 && !isSummary(request);
  if (isToSpawn) return callTools([spawn(String(name), below, true)]);
  return phasePlay(own, MARKS[name as Name], request);
}

/** Half of them are waited for. */
function rootPlay(name: string): Reply {
  return callTools(PATHS.map((path, n) => spawn(name, path, n % 2 === 1)));
}

function phasePlay(phase: Phase | undefined, mark: string, request: ChatRequest): Reply {
  const calling = (tool: string, args: unknown) => callTools([{ name: tool, arguments: args }]);
  switch (phase) {
    case 'sampling':
      return paced(say('One two three.'), { hold: hold(), holdAt: 1 });
    case 'gate':
      return calling('write_file', { path: 'one.txt', content: 'one' });
    case 'tools':
    case 'cleanup':
      return calling('shell', { command: `trap '' TERM; while :; do sleep 0.1; done # ${mark}` });
    case 'waiting':
      return calling('wait_for', { event: 'never' });
    case 'resting':
      return status(429, { error: { message: 'slow down' } }, { 'retry-after': '100' });
    case 'compacting':
      return isSummary(request) ? paced(say('So far.'), { hold: hold() }) : step(request.messages.length, 48_000);
    case 'ending':
      return say(AT_THE_GATE);
    default:
      return status(400, 'nobody wrote this conversation');
  }
}

const AT_THE_GATE = 'Hold the gate.';
/** Turns whose stop gate is asked. */
const asked = new Set<string>();

let at: TestHouse;
/** The first turns of both families begin at once; they are stopped one after the other. */
let sessions: Readonly<Record<Name, string>>;
beforeAll(async () => {
  const agents = ['tester', 'asks', 'small'];
  const limits = { outputTokens: 1_000, contextTokens: 40_000 };
  at = await testHouse({
    rules: (request) => billed(play(request), request),
    agent: { attended: true, tools: ['shell', 'wait_for', 'write_file', 'list_files'], agents },
    others: [
      { name: 'asks', permissions: { mode: 'default' } },
      { name: 'small', limits },
    ],
    definition: {
      hooks: [
        {
          event: 'StopGate',
          async run({ turn: of, lastText }, signal) {
            if (lastText !== AT_THE_GATE) return null;
            asked.add(String(of));
            return await new Promise((pass) => signal.addEventListener('abort', () => pass(null)));
          },
        },
      ],
    },
  });
  const [cancelled, terminated] = await Promise.all([
    at.submit('family cancelled: root'),
    at.submit('family terminated: root'),
  ]);
  sessions = { cancelled: cancelled.session, terminated: terminated.session };
});
afterAll(async () => {
  await at.close();
});

function processesOf(mark: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(join('/proc', pid, 'cmdline'), 'utf8').includes(mark);
    } catch {
      return false;
    }
  });
}

interface Member {
  readonly turn: string;
  readonly own: Phase;
  readonly isParent: boolean;
  /** Null: the root. */
  readonly parent: Phase | null;
}

/** Who is there, by what they were told. */
async function membersOf(session: string): Promise<Member[]> {
  const rows = await at.house.database.db
    .select()
    .from(input)
    .where(and(sql`starts_with(${input.session}, ${`${session}/`})`, eq(input.kind, 'prompt')));
  const told = new Map(rows.map((row) => [row.session, TOLD.exec(row.body)?.[2]?.split('/') as Phase[]]));
  return [...told].map(([id, path]) => {
    const above = told.get(id.slice(0, id.lastIndexOf('/agent/')));
    return { turn: `${id}/1`, own: path[0] ?? 'sampling', isParent: path.length > 1, parent: above?.[0] ?? null };
  });
}

/** Whether a member is where it is to be stopped. */
function isThere({ turn: id, own, isParent }: Member, events: readonly RecordedEvent[]): boolean {
  const kinds = events.flatMap((each) => (each.turn === id ? [each.event.kind] : []));
  switch (own) {
    case 'sampling':
      return kinds.filter((kind) => kind === 'sample.started').length === (isParent ? 2 : 1);
    case 'gate':
    case 'waiting':
      return kinds.includes('approval.opened');
    case 'tools':
    case 'cleanup':
      return kinds.includes('call.started');
    case 'resting':
      return events.some(
        ({ turn: of, event }) => of === id && event.kind === 'stream.ended' && event.failure === 'rate_limited',
      );
    case 'compacting':
      return kinds.includes('compaction.started');
    case 'ending':
      return asked.has(id);
  }
}

/** Everybody is where they are to be stopped; returns who is there. */
async function inFullSwing(session: string, mark: string): Promise<Member[]> {
  const stopping = PATHS.flat().filter((phase) => phase === 'tools' || phase === 'cleanup').length;
  return await until(
    'all sub-agents are at work',
    async () => {
      const [members, events] = [await membersOf(session), await at.events(session)];
      const isFull = members.length === MEMBERS && processesOf(mark).length >= stopping;
      return isFull && members.every((member) => isThere(member, events)) ? members : null;
    },
    90_000,
  ).catch(async (error: unknown) => {
    const [members, events] = [await membersOf(session), await at.events(session)];
    const missing = members.filter((member) => !isThere(member, events)).map(({ turn: id, own }) => `${id} ${own}`);
    const over = only(events, 'agent.ended').map((end) => `${end.agent} ${end.detail}`);
    const told = `${members.length} are there, not where they should be: ${missing.join(', ')}`;
    throw new Error(`${told}; these have ended: ${over.join(', ')}`, { cause: error });
  });
}

async function turnsOf(session: string) {
  return await at.house.database.db.select().from(turn).where(sql`starts_with(${turn.session}, ${session})`);
}

async function allEnded(session: string, limitMs: number): Promise<void> {
  await until(
    'all turns have ended',
    async () => (await turnsOf(session)).every(({ endedAt }) => endedAt !== null),
    limitMs,
  );
}

/** Every turn has one end, every request one row that is closed, and the rows say what the provider counted. */
async function expectAllOver(session: string, name: Name): Promise<void> {
  const events = await at.events(session);
  expect(only(events, 'turn.ended')).toHaveLength(1 + MEMBERS);
  expect(only(events, 'agent.ended')).toHaveLength(MEMBERS);
  const rows = await at.house.database.db.select().from(usage).where(sql`starts_with(${usage.session}, ${session})`);
  const sent = at.provider.requests.filter(({ body }) => TOLD.exec(JSON.stringify(body.messages))?.[1] === name);
  expect(rows).toHaveLength(sent.length);
  expect(rows.every((row) => row.closedAt !== null)).toBe(true);
  const counted = sent.filter(({ closedAt }) => closedAt === null).map(({ body }) => billed(play(body), body).content);
  const bills = counted.flatMap((content) => (content.kind === 'message' ? [content.usage] : []));
  const sum = (numbers: readonly (number | null | undefined)[]) =>
    numbers.reduce<number>((all, n) => all + (n ?? 0), 0);
  expect({ input: sum(rows.map((row) => row.inputTokens)), output: sum(rows.map((row) => row.outputTokens)) }).toEqual({
    input: sum(bills.map((bill) => bill?.prompt)),
    output: sum(bills.map((bill) => bill?.completion)),
  });
}

const PHASE_OF_END: Partial<Record<Phase, string>> = { cleanup: 'tools' };

describe('a family of three levels, eight of whom do different things, and so do those below them', {
  timeout: 180_000,
}, () => {
  it('is gone within 10 s of the cancel of its root, by its decider, with all ends written', async () => {
    const session = sessions.cancelled;
    const members = await inFullSwing(session, MARKS.cancelled);
    await inFullSwing(sessions.terminated, MARKS.terminated);
    await Promise.all(
      members
        .filter(({ own }) => own === 'cleanup')
        .map(async ({ turn: id }) => {
          await cancelTurn(at, id, 'bob', 'not this');
          await until('it cleans up', async () => (await turnHandle(at, id).query(turnState)).asked !== null);
        }),
    );
    const begun = Date.now();
    await cancelTurn(at, `${session}/1`, 'ann', 'enough');
    await until('all processes are gone', () => processesOf(MARKS.cancelled).length === 0);
    const took = Date.now() - begun;
    await allEnded(session, 30_000);
    note(`cancel of a family of ${1 + MEMBERS} to its last process and its last end, ms`, {
      took,
      ended: Date.now() - begun,
    });
    expect(took).toBeLessThan(10_000);
    const turns = new Map((await turnsOf(session)).map((row) => [row.id, row]));
    const aborted = { endReason: 'ABORTED', endDecidedBy: 'user' };
    const byAnn = { ...aborted, endBy: 'ann', endWhy: 'enough' };
    expect(turns.get(`${session}/1`)).toMatchObject({ ...byAnn, endDetail: 'user_cancel', endPhase: 'waiting' });
    for (const { turn: id, own, parent } of members) {
      const by = own === 'cleanup' || parent === 'cleanup' ? { ...aborted, endBy: 'bob', endWhy: 'not this' } : byAnn;
      const detail = own === 'cleanup' ? 'user_cancel' : 'parent_cancelled';
      const endPhase = PHASE_OF_END[own] ?? own;
      expect(turns.get(id), `${id}, ${own}`).toMatchObject({ ...by, endDetail: detail, endPhase });
    }
    const statuses = await Promise.all([...turns.keys()].map((id) => closedStatus(at, turnWorkflowId(id))));
    expect(statuses).toEqual(statuses.map(() => 'CANCELLED'));
    await expectAllOver(session, 'cancelled');
  });

  it('is gone within a minute of the termination of its root, which recovery sees', async () => {
    const session = sessions.terminated;
    const members = await inFullSwing(session, MARKS.terminated);
    const begun = Date.now();
    await turnHandle(at, `${session}/1`).terminate('the test');
    await until('all processes are gone', () => processesOf(MARKS.terminated).length === 0, 60_000);
    await allEnded(session, 60_000);
    expect(Date.now() - begun).toBeLessThan(60_000);
    const turns = new Map((await turnsOf(session)).map((row) => [row.id, row]));
    expect(turns.get(`${session}/1`)).toMatchObject({
      endReason: 'INTERRUPTED',
      endDetail: 'terminated',
      recordedBy: 'recovery',
    });
    for (const { turn: id, own } of members) {
      const end = { endReason: 'ABORTED', endDetail: 'parent_cancelled', endDecidedBy: 'user' };
      expect(turns.get(id), `${id}, ${own}`).toMatchObject({ ...end, endPhase: PHASE_OF_END[own] ?? own });
    }
    await expectAllOver(session, 'terminated');
  });
});
