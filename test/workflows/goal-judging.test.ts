import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { goalVerdict } from '../../activities/store/schema.ts';
import type { HookFunction } from '../../activities/gate/hook-types.ts';
import { defineTool, type Tool } from '../../activities/tools/define-tool.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, hold, paced, say } from '../../testing/index.ts';
import { userTexts } from '../support/conversations.ts';
import { complete, counting, goalPlays, type Plays } from '../support/goal-plays.ts';
import {
  directives,
  foundOf,
  goalIs,
  movesOf,
  roundsOf,
  verdict,
  vote,
  wakesOf,
  type GoalWishes,
} from '../support/goals.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

/** What the pipeline of a branch says; each asking is counted. */
const pipelines = new Map<string, { state: string; asked: number }>();
const ciStatus = defineTool({
  name: 'ci_status',
  description: 'How the pipeline of a branch stands.',
  input: z.strictObject({ branch: z.string() }),
  effect: 'none',
  run: ({ branch }) => {
    const found = pipelines.get(branch);
    if (!found) return Promise.resolve({ isError: true, text: `There is no branch ${branch}.` });
    found.asked += 1;
    return Promise.resolve({ isError: false, text: JSON.stringify({ state: found.state, branch }) });
  },
}) as Tool;

/** Objects to one answer, once. */
const objects: HookFunction = (input) =>
  input.event === 'StopGate' && String(input.lastText).includes('STOP GATE OBJECTS 1')
    ? { decision: 'block', reason: 'The changelog is missing.' }
    : null;

const plays = goalPlays();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({
    rules: plays.rules,
    tools: [ciStatus],
    definition: { hooks: [{ event: 'StopGate', run: objects }] },
    agent: { agents: ['helper'] },
    others: [
      { name: 'helper', tools: [], agents: [], limits: { maxTokens: 20_000 } },
      { name: 'priced', agents: [], prices: { input: 1, output: 1 }, limits: { maxUsd: 1 } },
    ],
  });
  const { database, temporal, taskQueue, catalogue, listener } = at.house;
  runs = createRuns({ database, temporal, taskQueue, catalogue, listener, engineLimitMs: 30_000 });
});
afterAll(async () => {
  await at.close();
});

const TENANT = 'default';
const begin = (name: string, own: Plays, wishes: GoalWishes = {}) => plays.begin(at, name, own, wishes);

describe.concurrent('a goal', () => {
  it('whose check fails is never complete, whatever model and judge say', async () => {
    const made = await begin(
      'check fails',
      {
        agent: (request) =>
          request.messages.at(-1)?.role === 'tool'
            ? say('Done, believe me.')
            : callTools([{ name: 'update_goal', arguments: { status: 'complete', note: 'It is done.' } }]),
        judge: () => verdict('candidate_complete'),
      },
      { checks: ['echo no; exit 3'] },
    );
    const row = await goalIs(at, made.id, 'paused(no_progress)', 60_000);
    expect(await movesOf(at, made)).toEqual(['active by created', 'paused(no_progress) by no_progress']);
    const found = await foundOf(at, made);
    expect(found.filter((each) => each.startsWith('checks'))).toEqual(Array(3).fill('checks failed'));
    expect(row.state.rounds).toBe(3);
    await runs.orderGoal(TENANT, made.id, { kind: 'cancel', by: 'somebody' });
  });

  it('whose check passes is complete though the model never says so, and no judge is asked', async () => {
    let steps = 0;
    const made = await begin(
      'check passes',
      {
        agent: (request) => {
          steps += 1;
          return directives(request)[0]?.includes('round 2') && request.messages.at(-1)?.role !== 'tool'
            ? callTools([{ name: 'write_file', arguments: { path: 'done', content: 'x' } }])
            : say(`Not yet ${steps}.`);
        },
        judge: () => verdict('continue', { gap: 'the file is missing' }),
      },
      { checks: ['test -e done'] },
    );
    await goalIs(at, made.id, 'complete');
    expect(await foundOf(at, made)).toEqual(['checks failed', 'judge continue', 'checks passed', 'stop_gate pass']);
    expect(await movesOf(at, made)).toEqual(['active by created', 'complete by checks']);
  });

  it('whose check is a tool is complete when that says what is expected of it', async () => {
    const pipeline = { state: 'red', asked: 0 };
    pipelines.set('main', pipeline);
    let steps = 0;
    const made = await begin(
      'tool check',
      {
        agent: () => {
          steps += 1;
          if (steps === 2) pipeline.state = 'green';
          return say(`Pushed ${steps}.`);
        },
        judge: () => verdict('candidate_complete'),
      },
      {
        checks: [{ tool: 'ci_status', arguments: { branch: 'main' }, expect: { state: 'green' }, timeoutSeconds: 20 }],
      },
    );
    await goalIs(at, made.id, 'complete');
    expect(await foundOf(at, made)).toEqual([
      'checks failed',
      'judge candidate_complete',
      'checks passed',
      'stop_gate pass',
    ]);
    expect(pipeline.asked).toBe(2);
    const judged = await at.house.database.db.select().from(goalVerdict).where(eq(goalVerdict.goal, made.id));
    expect(judged.filter(({ source }) => source === 'checks').map(({ text }) => text.split('\n'))).toEqual(
      expect.arrayContaining([
        [
          'Check `ci_status {"branch":"main"} = {"state":"green"}`: the result is not the expected one.',
          '{"state":"red","branch":"main"}',
        ],
        ['Check `ci_status {"branch":"main"} = {"state":"green"}`: passed.', '{"state":"green","branch":"main"}'],
      ]),
    );
  });

  it('whose check names a tool that is gone, or changes something, fails it and says what to do', async () => {
    const texts: string[] = [];
    for (const tool of ['gone', 'shell']) {
      const made = await begin(
        `bad ${tool}`,
        { agent: () => say(`I tried ${tool}.`), judge: () => verdict('blocked', { blocker: 'x' }) },
        { checks: [{ tool, arguments: { command: 'touch ran' }, timeoutSeconds: 20 }], budget: { turns: 1 } },
      );
      await goalIs(at, made.id, 'budget_limited(turns)');
      const [found] = await at.house.database.db.select().from(goalVerdict).where(eq(goalVerdict.goal, made.id));
      texts.push(found?.text ?? '');
    }
    expect(texts).toEqual([
      expect.stringContaining('it can’t be called.\nThe agent tester has no tool gone to check with: name one of '),
      expect.stringContaining('it can’t be called.\nThe tool shell may do something each time it is called'),
    ]);
  });

  it('asks the stop gate once more before it is complete; an objection is in the next directive', async () => {
    const seen: string[] = [];
    const made = await begin('gated', {
      ...complete,
      agent: (request) => {
        seen.push(directives(request)[0] ?? '');
        return say(`STOP GATE OBJECTS ${seen.length}`);
      },
    });
    await goalIs(at, made.id, 'complete');
    const once = ['judge candidate_complete', 'sceptic approve'];
    expect(await foundOf(at, made)).toEqual([...once, 'stop_gate block', ...once, 'stop_gate pass']);
    expect(seen[1]).toContain('The changelog is missing.');
  });

  it('rests where no judge gives a usable verdict twice, and goes on when it is woken', async () => {
    let asked = 0;
    const made = await begin('unusable judge', {
      ...complete,
      agent: counting,
      judge: () => (++asked <= 2 ? say('I would rather not say.') : verdict('candidate_complete')),
    });
    await goalIs(at, made.id, 'paused(infrastructure)');
    expect(await foundOf(at, made)).toEqual(['judge unusable', 'judge unusable']);
    await runs.wakeGoal(TENANT, made.id, { id: 'try again', by: 'somebody' });
    await goalIs(at, made.id, 'complete');
    expect((await wakesOf(at, made.id)).map(({ key, outcome, why }) => [key, outcome, why])).toEqual([
      ['try again', 'fired', 'paused(infrastructure)'],
    ]);
  });

  it('goes on after a sceptic is sure that it is not done', async () => {
    let votes = 0;
    const made = await begin(
      'sceptics',
      {
        agent: counting,
        judge: () => verdict('candidate_complete'),
        sceptic: () => vote(++votes === 1 ? 'refute' : 'approve'),
      },
      { sceptics: 3 },
    );
    await goalIs(at, made.id, 'complete');
    expect(await foundOf(at, made)).toEqual([
      'judge candidate_complete',
      'sceptic refute',
      'judge candidate_complete',
      'sceptic approve',
      'sceptic approve',
      'sceptic approve',
      'stop_gate pass',
    ]);
    expect((await roundsOf(at, made.id))[1]?.body).toContain('I refute.');
  });
});

describe.concurrent('an order while a turn is judged', () => {
  const check = { command: 'echo $$ >> begun; test -e go || exec sleep 300', timeoutSeconds: 600 };
  const begunIn = (workspace: string) => {
    const path = join(workspace, 'begun');
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').filter(Boolean) : [];
  };
  const isGone = (pid: string | undefined) => !existsSync(`/proc/${pid}`);

  it('pauses the goal and leaves no check running; a resume judges that turn again', async () => {
    const made = await begin('paused in a check', { agent: counting }, { checks: [check] });
    const [pid] = await until('the check runs', async () => {
      const pids = begunIn(made.workspace);
      return pids.length > 0 ? pids : null;
    });
    await runs.orderGoal(TENANT, made.id, { kind: 'pause', by: 'a' });
    await goalIs(at, made.id, 'paused(user)', 10_000);
    await until('the check is gone', () => Promise.resolve(isGone(pid)));
    writeFileSync(join(made.workspace, 'go'), '');
    await runs.orderGoal(TENANT, made.id, { kind: 'resume', by: 'a' });
    await goalIs(at, made.id, 'complete');
    expect(await foundOf(at, made)).toEqual(['checks passed', 'stop_gate pass']);
    expect([begunIn(made.workspace).length, (await roundsOf(at, made.id)).length]).toEqual([2, 1]);
  });

  it('cuts the judge as well, who is asked again after a resume', async () => {
    const stop = hold();
    let asked = 0;
    const made = await begin('paused in the judge', {
      ...complete,
      agent: counting,
      judge: () => {
        asked += 1;
        return asked === 1 ? paced(verdict('continue', { gap: 'x' }), { hold: stop }) : verdict('candidate_complete');
      },
    });
    await stop.reached;
    await runs.orderGoal(TENANT, made.id, { kind: 'pause', by: 'a' });
    await goalIs(at, made.id, 'paused(user)', 10_000);
    await runs.orderGoal(TENANT, made.id, { kind: 'resume', by: 'a' });
    await goalIs(at, made.id, 'complete');
    stop.release();
    expect(await foundOf(at, made)).toEqual(['judge candidate_complete', 'sceptic approve', 'stop_gate pass']);
    expect([asked, (await roundsOf(at, made.id)).length]).toEqual([2, 1]);
  });

  it('cancels the goal and leaves no check running', async () => {
    const made = await begin('cancelled in a check', { agent: counting }, { checks: [check] });
    const [pid] = await until('the check runs', async () => {
      const pids = begunIn(made.workspace);
      return pids.length > 0 ? pids : null;
    });
    await runs.orderGoal(TENANT, made.id, { kind: 'cancel', by: 'a' });
    await goalIs(at, made.id, 'cancelled', 10_000);
    await until('the check is gone', () => Promise.resolve(isGone(pid)));
    expect(await foundOf(at, made)).toEqual([]);
  });
});

describe.concurrent('its budget', () => {
  it('is not overdrawn by a judge: one whose worst case is not left is not asked', async () => {
    let asked = 0;
    const made = await begin(
      'poor judge',
      {
        agent: counting,
        judge: () => {
          asked += 1;
          return verdict('candidate_complete');
        },
        sceptic: () => vote('approve'),
      },
      { agent: 'priced', budget: { microUsd: 1_000 } },
    );
    const row = await goalIs(at, made.id, 'budget_limited(usd)');
    expect([asked, row.state.spent.microUsd]).toEqual([0, 110]);
    expect(await movesOf(at, made)).toEqual(['active by created', 'budget_limited(usd) by reserve']);
    await runs.orderGoal(TENANT, made.id, { kind: 'edit', by: 'a', budget: { usd: 0.1 } });
    await goalIs(at, made.id, 'complete');
    expect(asked).toBe(1);
  });

  it('has what a sub-agent in the background uses after the end of its round, once', async () => {
    const stop = hold();
    // The first that is found counts, and the judge sees both names.
    plays.set('with a helper', {});
    plays.set('of the helper', { agent: () => paced(say('All is well.'), { hold: stop }) });
    const spawn = { agent: 'helper', prompt: 'GOAL of the helper. Look into it.', background: true };
    const made = await begin('with a helper', {
      ...complete,
      agent: (request) => {
        const said = userTexts(request).join('\n');
        if (said.includes('All is well.')) return say('It is well.');
        return request.messages.at(-1)?.role === 'tool'
          ? say('I wait for it.')
          : callTools([
              { name: 'spawn_agent', arguments: spawn },
              { name: 'update_goal', arguments: { status: 'waiting', note: 'for the helper', event: 'helped' } },
            ]);
      },
    });
    await stop.reached;
    const lent = await goalIs(at, made.id, 'waiting(event)');
    expect(lent.state.spent.tokens).toBe(2 * 110);
    expect(lent.state.held.tokens).toBe(20_000);
    stop.release();
    const row = await goalIs(at, made.id, 'complete');
    // Two requests of the round, the helper's, the turn that its end began, the judge and the sceptic.
    expect([row.state.spent.tokens, row.state.held.tokens, row.state.spent.turns]).toEqual([6 * 110, 0, 1]);
  });
});
