import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq, sum } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { goalIdOf } from '../../activities/store/intake.ts';
import { turn, usage } from '../../activities/store/schema.ts';
import { callTools, type ChatRequest, countToolResults, hold, paced, type Reply, say } from '../../testing/index.ts';
import { newestUserText } from '../support/conversations.ts';
import { foundOf, goalIs, movesOf, roleOf, roundsOf, verdict, vote } from '../support/goals.ts';
import { until } from '../support/until.ts';
import { Crowd, type Death, type Member } from './crowd.ts';
import type { Boundary, BoundaryName } from './kill-at.ts';

const LIMIT_MS = 180_000;

type Kill = Boundary | 'in the check' | 'in the judge’s answer';
type Path = 'checks' | 'sceptics';

/** Requests of each role, how often the checks ran, and what was found: where nobody dies. */
const UNDISTURBED = {
  checks: {
    asked: { agent: 3, judge: 1, sceptic: 0 },
    checked: 2,
    found: ['checks failed', 'judge continue', 'checks passed'],
  },
  sceptics: {
    asked: { agent: 2, judge: 2, sceptic: 1 },
    checked: 0,
    found: ['judge continue', 'judge candidate_complete', 'sceptic approve'],
  },
} as const;

const at = (when: Boundary['when'], name: BoundaryName, having?: string): Boundary => ({
  when,
  at: name,
  ...(having === undefined ? {} : { having }),
});

/** Where each goal loses its worker, and what is then asked or run once more. */
const KILLS: readonly (readonly [Path, Kill, { readonly again?: 'judge' | 'sceptic' | 'check' }])[] = [
  ['checks', at('after', 'recordGoal', '"signal":"created"'), {}],
  ['checks', at('before', 'directGoal'), {}],
  ['checks', at('after', 'directGoal'), {}],
  ['checks', at('before', 'writeEnd', '/2'), {}],
  ['checks', at('after', 'writeEnd', '/2'), {}],
  ['checks', 'in the check', { again: 'check' }],
  ['checks', at('before', 'keepVerdict', '"found":"passed"'), { again: 'check' }],
  ['checks', at('after', 'keepVerdict', '"found":"passed"'), {}],
  ['checks', at('before', 'recordGoal', '"kind":"goal.ended"'), {}],
  ['checks', at('after', 'recordGoal', '"kind":"goal.ended"'), {}],
  ['sceptics', at('before', 'openJudge'), {}],
  ['sceptics', at('after', 'openJudge'), {}],
  ['sceptics', 'in the judge’s answer', { again: 'judge' }],
  ['sceptics', at('before', 'keepVerdict', '"source":"judge"'), { again: 'judge' }],
  ['sceptics', at('after', 'keepVerdict', '"source":"judge"'), {}],
  ['sceptics', at('before', 'keepVerdict', '"source":"sceptic"'), { again: 'sceptic' }],
  ['sceptics', at('after', 'keepVerdict', '"source":"sceptic"'), {}],
];

const CASES = KILLS.map(([path, kill, { again }]) => ({
  path,
  kill,
  again,
  name: typeof kill === 'string' ? kill : `${kill.when} ${kill.at} ${kill.having ?? ''}`.trim(),
  asked: { agent: 0, judge: 0, sceptic: 0 },
}));
type Case = (typeof CASES)[number];

const isRoundOne = (request: ChatRequest) => newestUserText(request).startsWith('This is round 1 ');
const writes = callTools([{ name: 'write_file', arguments: { path: 'done', content: 'x' } }]);

function play({ path, asked }: Case, stop: ReturnType<typeof hold> | null): (request: ChatRequest) => Reply {
  return (request) => {
    const role = roleOf(request);
    asked[role] += 1;
    switch (role) {
      case 'sceptic':
        return vote('approve');
      case 'judge': {
        if (newestUserText(request).includes('All is done.')) return verdict('candidate_complete');
        const answer = verdict('continue', { gap: 'half of it is missing' });
        return stop && asked.judge === 1 ? paced(answer, { hold: stop, holdAt: 2 }) : answer;
      }
      case 'agent':
        if (!isRoundOne(request) && countToolResults(request) === 0) return say('Half is done.');
        return path === 'checks' && countToolResults(request) === 0 ? writes : say('All is done.');
    }
  };
}

const CHECK = 'echo run >> checked; test -e done || exit 1; while [ -e hold ]; do sleep 0.05; done';
const inFolder = (member: Member, file: string) => join(member.workspace, file);
const linesOf = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0);

let crowd: Crowd;
const members = new Map<Case, Member>();

// One worker dies in all of them at once, and one more takes over.
beforeAll(async () => {
  crowd = await Crowd.open({
    forge: { url: 'http://127.0.0.1:9', canLookUp: false, settleAfterMs: 0, requestMs: 100 },
  });
  const stop = hold();
  for (const each of CASES) {
    const isHeld = each.kill === 'in the judge’s answer';
    const member = await crowd.joinGoal(play(each, isHeld ? stop : null), {
      checks: each.path === 'checks' ? [CHECK] : [],
    });
    if (each.kill === 'in the check') writeFileSync(inFolder(member, 'hold'), '');
    members.set(each, member);
  }
  const deaths = [...members].flatMap(([{ kill }, member]): Death[] =>
    typeof kill === 'string' ? [] : [[member, kill]],
  );
  const dying = await crowd.worker(deaths);
  crowd.bootNext();
  const checking = [...members].filter(([{ kill }]) => kill === 'in the check').map(([, member]) => member);
  await Promise.all([
    crowd.standing(dying, deaths),
    stop.reached,
    ...checking.map((member) => until('the check runs', () => linesOf(inFolder(member, 'checked')) > 1, 90_000)),
  ]);
  await dying.kill();
  for (const member of checking) rmSync(inFolder(member, 'hold'));
  stop.release();
  await crowd.worker();
  await Promise.all([...members.values()].map(({ job }) => goalIs(seen(), goalIdOf(job), 'complete', 90_000)));
}, LIMIT_MS);
afterAll(async () => {
  await crowd.close();
});

const seen = () => ({
  house: crowd.house,
  events: (session: string) => readEvents(crowd.house.database.db, session, 0, 10_000),
});

describe.each(['checks', 'sceptics'] as const)('a goal that ends by its %s and loses its worker', (path) => {
  it.for(CASES.filter((each) => each.path === path))('$name: each round once, each budget once', async (each) => {
    const { session, job, workspace } = members.get(each) as Member;
    const { db } = crowd.house.database;
    const goal = { id: goalIdOf(job), session };
    const expected = UNDISTURBED[path];
    const more = (what: string) => (each.again === what ? 1 : 0);
    expect(await movesOf(seen(), goal)).toEqual(['active by created', `complete by ${path}`]);
    expect(await foundOf(seen(), goal)).toEqual(expected.found);
    expect((await roundsOf(seen(), goal.id)).map(({ round, status }) => [round, status])).toEqual([
      [0, 'consumed'],
      [1, 'consumed'],
    ]);
    expect(await db.$count(turn, eq(turn.session, session))).toBe(2);
    const { agent, judge, sceptic } = expected.asked;
    expect(each.asked).toEqual({ agent, judge: judge + more('judge'), sceptic: sceptic + more('sceptic') });
    expect(linesOf(join(workspace, 'checked'))).toBe(expected.checked + more('check'));
    const { spent } = (await goalIs(seen(), goal.id, 'complete')).state;
    const [paid] = await db
      .select({ input: sum(usage.inputTokens), output: sum(usage.outputTokens) })
      .from(usage)
      .where(eq(usage.session, session));
    // Whatever was asked twice was paid twice, and is on the bill; only the answer that broke off told no price.
    const answered = each.asked.agent + each.asked.judge + each.asked.sceptic;
    const told = each.kill === 'in the judge’s answer' ? answered - 1 : answered;
    expect([spent.turns, spent.tokens]).toEqual([2, told * 110]);
    expect(Number(paid?.input) + Number(paid?.output)).toBe(spent.tokens);
  });
});
