import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { turn, usage } from '../../activities/store/schema.ts';
import { callTools, type ChatRequest, countToolResults, hold, paced, say } from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations } from '../support/conversations.ts';
import { cancelTurn, closedStatus, only } from '../support/engine-facts.ts';
import { note } from '../support/numbers.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, agent: { tools: ['shell', 'wait_for'], agents: ['tester'] } });
});
afterAll(async () => {
  await at.close();
});

const spawn = (prompt: string, maxTokens: number, background = false) => ({
  name: 'spawn_agent',
  arguments: { agent: 'tester', prompt, background, maxTokens },
});

/**
 * A root with eight sub-agents, one of which has one of its own, and that one too: they sample, run a command that
 * does not heed SIGTERM, wait for an event, or wait for their own. `mark` is in the command line of each process.
 */
function family(name: string, mark: string): void {
  const stubborn = () =>
    callTools([{ name: 'shell', arguments: { command: `trap '' TERM; while :; do sleep 0.1; done # ${mark}` } }]);
  const sampling = () => paced(say('One two three.'), { hold: hold(), holdAt: 1 });
  const waiting = () => callTools([{ name: 'wait_for', arguments: { event: 'never' } }]);
  talk.on(`${name} sampling`, sampling);
  talk.on(`${name} running`, stubborn);
  talk.on(`${name} waiting`, waiting);
  talk.on(`${name} level 2`, () => callTools([spawn(`${name} running`, 5_000)]));
  talk.on(`${name} level 1`, (request: ChatRequest) =>
    countToolResults(request) === 0
      ? callTools([spawn(`${name} sampling`, 10_000, true), spawn(`${name} level 2`, 10_000)])
      : say('They are done.'),
  );
  talk.on(`${name} root`, (request: ChatRequest) => {
    if (countToolResults(request) > 0) return sampling();
    const kinds = ['sampling', 'sampling', 'running', 'running', 'waiting', 'waiting'];
    return callTools([
      ...kinds.map((kind) => spawn(`${name} ${kind}`, 50_000, true)),
      spawn(`${name} level 1`, 50_000),
      spawn(`${name} running`, 50_000),
    ]);
  });
}

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

/** Everybody is where they are to be stopped. */
async function inFullSwing(session: string, mark: string): Promise<void> {
  await until(
    'eleven sub-agents are at work',
    async () => {
      const events = await at.events(session);
      return (
        only(events, 'agent.started').length === 11 &&
        only(events, 'sample.started').length === 12 &&
        only(events, 'approval.opened').length === 2 &&
        processesOf(mark).length >= 4
      );
    },
    60_000,
  );
}

async function turnsOf(session: string) {
  return await at.house.database.db.select().from(turn).where(sql`starts_with(${turn.session}, ${session})`);
}

/** Every turn has one end, every request one row that is closed, and the rows say what the provider counted. */
async function expectAllOver(session: string, name: string): Promise<void> {
  const events = await at.events(session);
  expect(only(events, 'turn.ended')).toHaveLength(12);
  expect(only(events, 'agent.ended')).toHaveLength(11);
  const rows = await at.house.database.db.select().from(usage).where(sql`starts_with(${usage.session}, ${session})`);
  const sent = at.provider.requests.filter(({ body }) =>
    String(body.messages.find(({ role }) => role === 'user')?.content).startsWith(name),
  );
  expect(rows).toHaveLength(sent.length);
  const answered = sent.filter(({ closedAt }) => closedAt === null);
  const complete = rows.filter((row) => row.complete);
  expect(complete).toHaveLength(answered.length);
  expect(complete.map((row) => (row.inputTokens ?? 0) + (row.outputTokens ?? 0))).toEqual(complete.map(() => 110));
  expect(rows.every((row) => row.closedAt !== null)).toBe(true);
}

describe('a family of three levels', { timeout: 120_000 }, () => {
  it('is gone within 10 s of the cancel of its root, by its decider, with all ends written', async () => {
    family('cancelled', 'pawl-mark-cancelled');
    const { session } = await at.submit('cancelled root');
    await inFullSwing(session, 'pawl-mark-cancelled');
    const asked = Date.now();
    await cancelTurn(at, `${session}/1`, 'ann', 'enough');
    await until('all processes are gone', async () => processesOf('pawl-mark-cancelled').length === 0);
    const took = Date.now() - asked;
    await until('all turns have ended', async () => (await turnsOf(session)).every(({ endedAt }) => endedAt !== null));
    note('cancel of a family of 12 to its last process and its last end, ms', { took, ended: Date.now() - asked });
    expect(took).toBeLessThan(10_000);
    for (const each of await turnsOf(session)) {
      const detail = each.session === session ? 'user_cancel' : 'parent_cancelled';
      expect(each).toMatchObject({
        endReason: 'ABORTED',
        endDetail: detail,
        endDecidedBy: 'user',
        endBy: 'ann',
        endWhy: 'enough',
      });
      expect(await closedStatus(at, turnWorkflowId(each.id))).toBe('CANCELLED');
    }
    await expectAllOver(session, 'cancelled');
  });

  it('is gone within a minute of the termination of its root, which recovery sees', async () => {
    family('terminated', 'pawl-mark-terminated');
    const { session } = await at.submit('terminated root');
    await inFullSwing(session, 'pawl-mark-terminated');
    const asked = Date.now();
    await at.house.temporal.workflow.getHandle(turnWorkflowId(`${session}/1`)).terminate('the test');
    await until('all processes are gone', async () => processesOf('pawl-mark-terminated').length === 0, 60_000);
    await until(
      'all turns have ended',
      async () => (await turnsOf(session)).every(({ endedAt }) => endedAt !== null),
      60_000,
    );
    expect(Date.now() - asked).toBeLessThan(60_000);
    for (const each of await turnsOf(session)) {
      if (each.session === session)
        expect(each).toMatchObject({ endReason: 'INTERRUPTED', endDetail: 'terminated', recordedBy: 'recovery' });
      else expect(each).toMatchObject({ endReason: 'ABORTED', endDetail: 'parent_cancelled', endDecidedBy: 'user' });
    }
    await expectAllOver(session, 'terminated');
  });
});
