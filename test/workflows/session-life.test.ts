import { eq } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { session as sessionTable } from '../../activities/store/schema.ts';
import { chainOn, writeLinks } from '../../activities/store/transcript.ts';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { type ChatRequest, callTools, countToolResults, hold, paced, type Reply, say } from '../../testing/index.ts';
import { conversations, newestUserText, userTexts } from '../support/conversations.ts';
import { only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

/** What the world saw. */
const posted: string[] = [];
const post = defineTool({
  name: 'post',
  description: 'Posts.',
  input: z.strictObject({ text: z.string() }),
  effect: 'once',
  onUnknown: 'tell',
  run: ({ text }) => {
    posted.push(text);
    return Promise.resolve({ isError: false, text: `posted ${text}` });
  },
});

const talk = conversations();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, tools: [post] });
  runs = createRuns(at.house);
});
afterEach(() => expect(at.provider.faults).toEqual([]));
afterAll(() => at.close());

const requests = (first: string) => talk.requestsOf(at.provider, first).map(({ body }) => body);
const headOf = async (of: string) => (await runs.session('default', of))?.head ?? '';
const echo = (request: ChatRequest): Reply => say(`heard ${newestUserText(request)}`);

/** Sends a prompt and waits for the end of its turn. */
async function prompt(session: string, n: number, text: string) {
  const sent = await runs.send('default', session, { text, by: 'ann' });
  expect(sent).toMatchObject({ kind: 'accepted', isNew: true });
  return await at.ended(session, n);
}

describe.concurrent('a session', () => {
  it('takes prompts while a turn runs; one that is edited is passed over, and heard as it was saved', async () => {
    const stop = hold();
    talk.on('edits', (request) =>
      userTexts(request).length === 1 ? paced(say('One.'), { hold: stop, holdAt: 1 }) : echo(request),
    );
    const { session, job } = await at.submit('edits');
    await stop.reached;
    const [first, second, third] = await Promise.all(
      ['frist', 'second', 'third'].map(async (text) => {
        const sent = await runs.send('default', job, { text, id: text, by: 'ann' });
        if (sent?.kind !== 'accepted') throw new Error(sent?.kind);
        return sent.input;
      }),
    );
    expect(await runs.lockInput('default', first!, { by: 'ann' })).toMatchObject({ kind: 'locked_now' });
    expect(await runs.withdrawInput('default', third!, { by: 'bob', why: 'no need' })).toEqual({ kind: 'changed' });
    stop.release();
    await at.ended(session, 2);
    expect(userTexts(requests('edits').at(-1)!)).toEqual(['edits', 'second']);
    // Saving it lets go of the lock, and the idle session goes on with it.
    expect(await runs.editInput('default', first!, { text: 'first', by: 'ann' })).toEqual({ kind: 'changed' });
    await at.ended(session, 3);
    expect(userTexts(requests('edits').at(-1)!)).toEqual(['edits', 'second', 'first']);
    expect(await runs.editInput('default', first!, { text: 'x', by: 'ann' })).toMatchObject({ kind: 'taken' });
    const page = await runs.inputs('default', session);
    expect(page?.inputs.map(({ status, by, turn }) => [status, by, turn])).toEqual(
      expect.arrayContaining([
        ['consumed', null, `${session}/1`],
        ['consumed', 'ann', `${session}/3`],
        ['consumed', 'ann', `${session}/2`],
        ['withdrawn', 'ann', null],
      ]),
    );
    expect(second).toBeTruthy();
  });

  it('rewound: the model does not see what came after, and is told what that did to the world', async () => {
    talk.on('rewinds', (request) =>
      newestUserText(request) === 'post it' && countToolResults(request) === 0
        ? callTools([{ name: 'post', arguments: { text: 'news' } }])
        : echo(request),
    );
    const { session } = await at.submit('rewinds');
    await at.ended(session);
    const before = await headOf(session);
    await prompt(session, 2, 'post it');
    const after = await headOf(session);
    expect(await runs.rewind('default', session, { to: before.slice(0, 12), by: 'ann' })).toMatchObject({
      kind: 'rewound',
      at: before,
      effects: 1,
    });
    await prompt(session, 3, 'another way');
    const said = userTexts(requests('rewinds').at(-1)!);
    expect(said).toEqual(['rewinds', expect.stringContaining('post {"text":"news"}: it took effect'), 'another way']);
    expect(countToolResults(requests('rewinds').at(-1)!)).toBe(0);
    // And forward again, into the branch that was left.
    expect(await runs.rewind('default', session, { to: after, by: 'ann' })).toMatchObject({ head: after, effects: 0 });
    await prompt(session, 4, 'go on');
    expect(userTexts(requests('rewinds').at(-1)!)).toEqual(['rewinds', 'post it', 'go on']);
    expect(posted.filter((text) => text === 'news')).toHaveLength(1);
    expect(only(await at.events(session), 'session.rewound')).toHaveLength(2);
  });

  it('is not rewound while a turn is open; a fork of it goes on beside it', async () => {
    const stop = hold();
    talk.on('forks', (request) =>
      newestUserText(request) === 'wait' ? paced(say('One.'), { hold: stop, holdAt: 1 }) : echo(request),
    );
    const { session } = await at.submit('forks');
    await at.ended(session);
    await runs.send('default', session, { text: 'wait', by: 'ann' });
    await stop.reached;
    expect(await runs.rewind('default', session, { to: 'start', by: 'ann' })).toEqual({
      kind: 'busy',
      turn: `${session}/2`,
    });
    expect(await runs.archive('default', session, { archived: true, by: 'ann' })).toMatchObject({ kind: 'busy' });
    const forked = await runs.fork('default', session, { by: 'ann', title: 'beside' });
    if (forked?.kind !== 'forked') throw new Error(forked?.kind);
    expect(await prompt(forked.session, 1, 'beside')).toMatchObject({ endReason: 'COMPLETED' });
    expect(userTexts(requests('forks').at(-1)!)).toEqual(['forks', 'beside']);
    stop.release();
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect((await at.transcript(forked.session)).map(({ text }) => text)).toEqual([
      'forks',
      'heard forks',
      'beside',
      'heard beside',
    ]);
    expect((await at.transcript(session)).map(({ text }) => text)).toEqual(['forks', 'heard forks', 'wait', 'One.']);
  });

  it('rewound into the middle of a batch: its calls have their results again when the next turn opens', async () => {
    talk.on('middle', (request) =>
      newestUserText(request) === 'middle' && countToolResults(request) === 0
        ? callTools([{ name: 'post', arguments: { text: 'once' } }])
        : echo(request),
    );
    const { session } = await at.submit('middle');
    await at.ended(session);
    const page = await runs.messages('default', session);
    const asking = page?.messages.find(({ tools, kind }) => kind === 'assistant' && tools.length > 0);
    await runs.rewind('default', session, { to: asking?.hash ?? '', by: 'ann' });
    expect(await prompt(session, 2, 'and now?')).toMatchObject({ endReason: 'COMPLETED' });
    expect((await at.transcript(session)).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
      'user middle',
      'assistant ',
      'tool_result posted once',
      'user and now?',
      'assistant heard and now?',
    ]);
    expect(only(await at.events(session), 'chain.repaired')).toMatchObject([{ from: asking?.hash, results: 1 }]);
  });
});

// Trap: a turn that tries again and again to read what is not there, or one that goes on without its past.
describe.concurrent('a chain that can’t be read', () => {
  it.each([
    ['a head that names nothing', 'context.unknown_head'],
    ['a missing message', 'context.missing_parent'],
  ])('%s ends the turn, says so, and a rewind helps', async (name, type) => {
    talk.on(name, echo);
    const { session } = await at.submit(name);
    await at.ended(session);
    const good = await headOf(session);
    const { db } = at.house.database;
    const gone = { hash: 'e'.repeat(64), depth: 6 };
    const body = { kind: 'user', text: 'orphan', input: `in_${name}`, source: 'prompt' } as const;
    const [orphan] = chainOn(gone, [body], () => 1);
    await db.transaction((tx) => writeLinks(tx, [orphan!]));
    const head = type === 'context.unknown_head' ? gone.hash : orphan!.hash;
    await db.update(sessionTable).set({ head }).where(eq(sessionTable.id, session));
    expect(await prompt(session, 2, 'hello?')).toMatchObject({
      endReason: 'ERROR',
      endDetail: 'context_unusable',
      endDecidedBy: 'runtime',
      endSignal: { name: 'fault', type },
      head,
    });
    expect(requests(name)).toHaveLength(1);
    expect(await headOf(session)).toBe(head);
    expect(await runs.rewind('default', session, { to: good, by: 'ann' })).toMatchObject({ kind: 'rewound' });
    expect(await prompt(session, 3, 'again')).toMatchObject({ endReason: 'COMPLETED' });
    expect(userTexts(requests(name).at(-1)!)).toEqual([name, 'again']);
  });
});

it('archived: it takes nothing, and says so, until it is taken out again', async () => {
  talk.on('archived', echo);
  const { session, job } = await at.submit('archived');
  await at.ended(session);
  expect(await runs.archive('default', session, { archived: true, by: 'ann' })).toEqual({
    kind: 'done',
    changed: true,
  });
  expect(await runs.send('default', job, { text: 'x', by: 'ann' })).toEqual({ kind: 'archived' });
  await expect(runs.report('default', job, { name: 'e', by: 'ann' })).rejects.toMatchObject({
    name: 'SessionClosed',
    why: 'archived',
  });
  expect((await runs.sessions('default', { state: 'archived' })).sessions.map(({ id }) => id)).toEqual([session]);
  await runs.archive('default', session, { archived: false, by: 'ann' });
  expect(await prompt(session, 2, 'back')).toMatchObject({ endReason: 'COMPLETED' });
});
