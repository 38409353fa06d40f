import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { C, callTools, chunks, countToolResults, D, F, say, status, U } from '../../testing/index.ts';
import { conversations, newestUserText } from '../support/conversations.ts';
import { only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    expectKey: true,
    others: [
      { name: 'no-raise', limits: { outputTokens: 100, raisedOutputTokens: 100 } },
      { name: 'small', limits: { outputTokens: 100, raisedOutputTokens: 800 } },
      { name: 'bound', contract: { tools: ['write_file'], baseMs: 10 } },
    ],
  });
});
afterAll(async () => {
  await at.close();
});

const nothing = chunks([C({ role: 'assistant' }), F('stop'), U(10, 0), D]);
const cut = (text: string) => say(text, { finish: 'length' });

/** What was asked for, in order: the cap of each request, and the newest thing a user said in it. */
function asked(first: string) {
  return talk.requestsOf(at.provider, first).map(({ body }) => [body['max_tokens'], newestUserText(body)]);
}

async function transitions(session: string): Promise<string[]> {
  return only(await at.events(session), 'sample.started').map(({ transition }) => transition);
}

async function textOf(job: string): Promise<string | null> {
  const { createRuns } = await import('../../client/index.ts');
  const { database, temporal, taskQueue, catalogue, listener } = at.house;
  const runs = createRuns({ database, temporal, taskQueue, catalogue, listener });
  return (await runs.get('default', job))?.text ?? null;
}

describe.concurrent('an output that its cap cuts', () => {
  it('is dropped once and asked for with the raised cap', async () => {
    talk.on('a long one', (request) => (request['max_tokens'] === 800 ? say('Whole.') : cut('Half')));
    const { session } = await at.submit('a long one', { agent: 'small' });
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
    expect(await transitions(session)).toEqual(['opened', 'output_cap_raised']);
    // The same request but for its cap: nothing of the half is in it.
    expect(asked('a long one')).toEqual([
      [100, 'a long one'],
      [800, 'a long one'],
    ]);
    expect((await at.transcript(session)).map((message) => 'text' in message && message.text)).toEqual([
      'a long one',
      'Whole.',
    ]);
  });

  it('goes on in pieces, three times, then ends MAX_TOKENS with all of them as one text', async () => {
    let pieces = 0;
    talk.on('endless', () => cut(`piece ${(pieces += 1)} `));
    const { session, job } = await at.submit('endless', { agent: 'no-raise' });
    expect(await at.ended(session)).toMatchObject({
      endReason: 'MAX_TOKENS',
      endDetail: 'output_limit',
      endDecidedBy: 'runtime',
      endSignal: { name: 'limit', limit: 'output_tokens', allowed: 100, used: 100 },
    });
    const going = Array<string>(3).fill('output_continued');
    expect(await transitions(session)).toEqual(['opened', ...going]);
    expect(
      asked('endless')
        .slice(1)
        .every(([, said]) => String(said).startsWith('Your reply was cut')),
    ).toBe(true);
    expect(await textOf(job)).toBe('piece 1 piece 2 piece 3 piece 4 ');
  });

  it('is asked for with the usual cap again where the provider refuses the raised one', async () => {
    talk.on('capped', (request) => {
      if (request['max_tokens'] === 800) return status(400, { error: { message: 'max_tokens is too large' } });
      return newestUserText(request).startsWith('Your reply was cut') ? say('the rest.') : cut('Half and ');
    });
    const { session, job } = await at.submit('capped', { agent: 'small' });
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect(await transitions(session)).toEqual([
      'opened',
      'output_cap_raised',
      'output_cap_refused',
      'output_continued',
    ]);
    expect(await textOf(job)).toBe('Half and the rest.');
  });
});

describe.concurrent('a reply that says nothing', () => {
  it('is asked for three times, then ends ERROR/model', async () => {
    talk.on('silence', () => nothing);
    const { session } = await at.submit('silence');
    expect(await at.ended(session)).toMatchObject({
      endReason: 'ERROR',
      endDetail: 'model',
      endSignal: { name: 'retries_spent', cause: 'empty_reply', used: 2 },
    });
    expect(await transitions(session)).toEqual(['opened', 'resampled_empty', 'resampled_empty']);
    const keys = talk.requestsOf(at.provider, 'silence').map(({ headers }) => headers['idempotency-key']);
    expect(new Set(keys).size).toBe(3);
  });

  it('after tool results is nudged once, then ends COMPLETED with no text', async () => {
    talk.on('work, then silence', (request) =>
      countToolResults(request) === 0 ? callTools([{ name: 'list_files', arguments: {} }]) : nothing,
    );
    const { session, job } = await at.submit('work, then silence');
    expect(await at.ended(session)).toMatchObject({
      endReason: 'COMPLETED',
      endDetail: 'final_answer',
      endDecidedBy: 'model',
      endSignal: { name: 'retries_spent', cause: 'empty_reply', used: 2 },
    });
    expect(await transitions(session)).toEqual([
      'opened',
      'tool_results',
      'resampled_empty',
      'resampled_empty',
      'nudged_empty',
    ]);
    expect(await textOf(job)).toBeNull();
  });

  it('is no way around what has to be done: the contract is asked, too', async () => {
    const write = { name: 'write_file', arguments: { path: 'a.txt', content: 'done' } };
    talk.on('work, and forget', (request) => {
      if (countToolResults(request) === 0) return callTools([{ name: 'list_files', arguments: {} }]);
      if (countToolResults(request) > 1) return say('Now it is done.');
      return newestUserText(request).startsWith('A tool that this task requires') ? callTools([write]) : nothing;
    });
    const { session } = await at.submit('work, and forget', { agent: 'bound' });
    expect(await at.ended(session)).toMatchObject({
      endReason: 'COMPLETED',
      endContract: 'met',
      endSignal: { name: 'model_stop' },
    });
    expect(await transitions(session)).toEqual([
      'opened',
      'tool_results',
      'resampled_empty',
      'resampled_empty',
      'nudged_empty',
      'contract_rerun',
      'tool_results',
    ]);
  });

  it('that promises calls and brings none is told so once; then its text is the answer', async () => {
    talk.on('promises', () => say('I will look.', { finish: 'tool_calls' }));
    const { session } = await at.submit('promises');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
    expect(await transitions(session)).toEqual(['opened', 'calls_missing']);
  });
});
