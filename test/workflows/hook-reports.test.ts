import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { and, eq, isNull, like, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HOOK_EVENTS, type Hook, type HookEvent, type HookInput } from '../../activities/gate/hook-types.ts';
import { HOOKS_RECEIVER } from '../../activities/store/reports.ts';
import { outbox } from '../../activities/store/schema.ts';
import {
  callTools,
  type ChatRequest,
  countToolResults,
  hold,
  lastUserText,
  paced,
  type Reply,
  say,
  status,
} from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { cancelTurn, only } from '../support/engine-facts.ts';
import { userTexts } from '../support/conversations.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const told: HookInput[] = [];
const REPORTS = HOOK_EVENTS.filter((event) => !['UserPromptSubmit', 'PreToolUse', 'StopGate'].includes(event));
const listening = REPORTS.map((event): Hook => ({ event, run: (input) => void told.push(input) }));

const CALLS: Readonly<Record<string, { name: string; arguments: unknown }>> = {
  works: { name: 'write_file', arguments: { path: 'a.txt', content: 'a' } },
  fails: { name: 'read_file', arguments: { path: 'not-there.txt' } },
  denied: { name: 'shell', arguments: { command: 'rm -rf /tmp/nothing' } },
  leads: { name: 'spawn_agent', arguments: { agent: 'tester', prompt: 'helps' } },
  blocked: { name: 'report_blocked', arguments: { on: 'person', what: 'a key' } },
  'max steps': { name: 'list_files', arguments: {} },
};

const held = hold();
const ENDS: Readonly<Record<string, Reply>> = {
  refused: say('No.', { finish: 'content_filter' }),
  cut: say('And so', { finish: 'length' }),
  broken: status(400, { error: { message: 'no' } }),
  cancelled: paced(say('One two three.'), { hold: held, holdAt: 2 }),
  killed: paced(say('One two three.'), { hold: hold(), holdAt: 2 }),
};

function rules(request: ChatRequest): Reply {
  // Asked to go on, it is cut again.
  const text = userTexts(request).includes('cut') ? 'cut' : lastUserText(request);
  const call = CALLS[text];
  return call && countToolResults(request) === 0 ? callTools([call]) : (ENDS[text] ?? say('Done.'));
}

let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({
    rules,
    agent: {
      tools: ['write_file', 'read_file', 'list_files', 'shell', 'report_blocked'],
      agents: ['tester'],
      permissions: { mode: 'bypass', rules: [{ action: 'deny', tool: 'shell', argument: 'rm *' }] },
    },
    others: [{ name: 'one-step', limits: { maxSteps: 1 } }],
    definition: {
      hooks: [
        ...listening,
        { event: 'Stop', run: slow },
        { event: 'SessionStart', run: { command: 'sh', args: ['-c', 'cat > /dev/null; exit 1'] } },
      ],
    },
  });
});
afterAll(async () => {
  await at.close();
});

const slowOnes = new Set<string>();
/** Hangs where the test says so; the limit ends it. */
async function slow({ session }: HookInput, signal: AbortSignal): Promise<null> {
  if (!slowOnes.has(session)) return null;
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  return null;
}

const of = (session: string) => told.filter((input) => input.session === session);
const namesOf = (session: string) => of(session).map(({ event }) => event);

async function toldOf(session: string, last: HookEvent): Promise<readonly HookInput[]> {
  await until(`${last} of ${session}`, () => namesOf(session).includes(last));
  return of(session);
}

async function nothingLeft(session: string): Promise<void> {
  const open = and(
    eq(outbox.receiver, HOOKS_RECEIVER),
    isNull(outbox.acknowledgedAt),
    like(outbox.event, `%${session}%`),
  );
  await until('all is told', async () => (await at.house.database.db.$count(outbox, open)) === 0);
}

it('hooks are told of the session, its calls and its end, with what each is about', async () => {
  mkdirSync(join(at.workspaces, 'works'), { recursive: true });
  const { session } = await at.submit('works', { workspace: 'works' });
  await at.ended(session);
  const all = await toldOf(session, 'SessionEnd');
  const common = { session, workspace: join(at.workspaces, 'works') };
  // No order is promised: each is told by itself.
  expect([...all].sort((a, b) => REPORTS.indexOf(a.event) - REPORTS.indexOf(b.event))).toEqual([
    { ...common, event: 'SessionStart', id: `session_start/${session}/1`, turn: `${session}/1`, source: 'new' },
    {
      ...common,
      event: 'PostToolUse',
      id: expect.stringMatching(/^call\/[0-9a-f]{64}$/) as string,
      turn: `${session}/1`,
      tool: 'write_file',
      effect: 'idempotent',
      args: { path: 'a.txt', content: 'a' },
      status: 'ok',
      result: expect.stringContaining('a.txt') as string,
      note: null,
    },
    {
      ...common,
      event: 'Stop',
      id: `stop/${session}/1`,
      turn: `${session}/1`,
      reason: 'COMPLETED',
      detail: 'final_answer',
      decidedBy: 'model',
      signal: { name: 'model_stop' },
      by: null,
      why: null,
      recordedBy: 'turn',
      step: 1,
      usage: expect.objectContaining({ complete: true }) as object,
      lastText: 'Done.',
    },
    { ...common, event: 'SessionEnd', id: `session_end/${session}/1`, turn: `${session}/1`, reason: 'queue_empty' },
  ]);
});

it('a call that fails and one that is denied are told as such', async () => {
  const [fails, denied] = await Promise.all([at.submit('fails'), at.submit('denied')]);
  const failure = (await toldOf(fails.session, 'PostToolUseFailure')).find(({ tool }) => tool === 'read_file');
  expect(failure).toMatchObject({ event: 'PostToolUseFailure', status: 'error', args: { path: 'not-there.txt' } });
  const denial = (await toldOf(denied.session, 'PermissionDenied')).find(({ tool }) => tool === 'shell');
  expect(denied.session && denial).toMatchObject({
    event: 'PermissionDenied',
    by: 'rule',
    status: 'denied',
    args: { command: 'rm -rf /tmp/nothing' },
    result: expect.stringContaining('rule 1') as string,
  });
  await toldOf(denied.session, 'SessionEnd');
  expect(namesOf(denied.session)).not.toContain('PostToolUse');
});

it.each<[string, HookEvent, string]>([
  ['works', 'Stop', 'final_answer'],
  ['refused', 'Stop', 'refused'],
  ['blocked', 'Stop', 'awaiting_input'],
  ['cut', 'StopFailure', 'output_limit'],
  ['broken', 'StopFailure', 'invalid_request'],
  ['max steps', 'StopCancelled', 'max_steps'],
])('a turn that is %s is told as %s, once', async (text, event, detail) => {
  const { session } = await at.submit(text, text === 'max steps' ? { agent: 'one-step' } : {});
  await at.ended(session);
  await toldOf(session, 'SessionEnd');
  await nothingLeft(session);
  const stops = of(session).filter((input) => input.event.startsWith('Stop'));
  expect(stops.map((input) => [input.event, input.detail])).toEqual([[event, detail]]);
});

it('a sub-agent is told of when it starts and when it has ended, to hooks of who started it', async () => {
  mkdirSync(join(at.workspaces, 'leads'), { recursive: true });
  const { session } = await at.submit('leads', { workspace: 'leads' });
  await at.ended(session);
  await toldOf(session, 'SessionEnd');
  await toldOf(session, 'SubagentStart');
  await toldOf(session, 'SubagentStop');
  const [agent, turn] = [`${session}/agent/1`, `${session}/1`];
  const facts = { session, turn, workspace: join(at.workspaces, 'leads'), agent, name: 'tester', mode: 'foreground' };
  const ended = { reason: 'COMPLETED', detail: 'final_answer', decidedBy: 'model' };
  expect(of(session).filter(({ event }) => event === 'SubagentStart' || event === 'SubagentStop')).toEqual([
    { ...facts, event: 'SubagentStart', id: `agent_start/${agent}` },
    { ...facts, ...ended, event: 'SubagentStop', id: `agent_stop/${agent}` },
  ]);
});

it('a cancel is told as StopCancelled, with who and why', async () => {
  const { session } = await at.submit('cancelled');
  await held.reached;
  await cancelTurn(at, `${session}/1`, 'pat', 'not needed any more');
  const [stop] = (await toldOf(session, 'StopCancelled')).filter(({ event }) => event.startsWith('Stop'));
  expect(stop).toMatchObject({ event: 'StopCancelled', detail: 'user_cancel', by: 'pat', why: 'not needed any more' });
});

it('a turn that was killed is told as StopFailure by recovery, once', { timeout: 60_000 }, async () => {
  const { session } = await at.submit('killed');
  await until('it streams', async () => only(await at.events(session), 'sample.started').length > 0);
  await at.house.temporal.workflow.getHandle(turnWorkflowId(`${session}/1`)).terminate('enough');
  await at.ended(session, 1, 60_000);
  const stops = (await toldOf(session, 'SessionEnd')).filter(({ event }) => event.startsWith('Stop'));
  expect(stops).toMatchObject([{ event: 'StopFailure', detail: 'terminated', recordedBy: 'recovery', why: 'enough' }]);
});

it('a session that goes on after it had come to rest is told as resumed', async () => {
  const { session } = await at.submit('first');
  await at.ended(session);
  await toldOf(session, 'SessionEnd');
  await at.send(session, 'prompt', 'second');
  await at.ended(session, 2);
  await until('the second end', () => namesOf(session).filter((event) => event === 'SessionEnd').length === 2);
  const starts = of(session).filter(({ event }) => event === 'SessionStart');
  expect(starts.map(({ source, turn }) => [source, turn])).toEqual([
    ['new', `${session}/1`],
    ['resumed', `${session}/2`],
  ]);
});

// A report must never be in the way of the work.
it('a hook that hangs holds up neither the next turn nor the next report, and is reported', {
  timeout: 30_000,
}, async () => {
  const { session } = await at.submit('first');
  slowOnes.add(session);
  await at.ended(session);
  await until('its hook hangs', () => namesOf(session).includes('Stop'));
  await at.send(session, 'prompt', 'second');
  await at.ended(session, 2);
  await toldOf((await at.submit('other')).session, 'SessionEnd');
  const times = new Map((await at.events(session)).map(({ event, turn, at: time }) => [`${event.kind} ${turn}`, time]));
  const tookMs =
    Date.parse(times.get(`turn.opened ${session}/2`) ?? '') - Date.parse(times.get('input.accepted null') ?? '');
  expect(tookMs).toBeLessThan(4_000);
  const failures = await until('the failures', async () => {
    const events = only(await at.events(session), 'hook.failed').filter(({ hook }) => hook.startsWith('Stop'));
    return events.length === 2 && events;
  });
  expect(failures).toEqual(
    Array(2).fill({ kind: 'hook.failed', layer: 'turn', hook: 'Stop 13 (slow)', why: 'took longer than 5000 ms' }),
  );
  expect(only(await at.events(session), 'hook.failed')).toContainEqual({
    kind: 'hook.failed',
    layer: 'turn',
    hook: 'SessionStart 14 (sh)',
    why: 'exit code 1',
  });
});

// Whoever told it died before it was done: the row is there, held until a time that is over.
it('what a dead process was telling is told once more, under the same id', { timeout: 60_000 }, async () => {
  const { session } = await at.submit('first');
  await at.ended(session);
  await toldOf(session, 'SessionEnd');
  await nothingLeft(session);
  const before = of(session).filter(({ event }) => event === 'Stop');
  await at.house.database.db
    .update(outbox)
    .set({ acknowledgedAt: null, body: sql`${outbox.body} || '{"heldUntil": "2020-01-01T00:00:00Z"}'` })
    .where(eq(outbox.event, `stop/${session}/1`));
  await until('recovery looks', () => of(session).filter(({ event }) => event === 'Stop').length > 1, 60_000);
  await nothingLeft(session);
  const after = of(session).filter(({ event }) => event === 'Stop');
  expect(after).toEqual([...before, ...before]);
});
