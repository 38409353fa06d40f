import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { callTools, say } from '../../testing/index.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ expectKey: true });
});
afterAll(async () => {
  await at.close();
});

it('samples, runs the tools, samples again and completes, with every layer’s events in order', async () => {
  mkdirSync(join(at.workspaces, 'one'), { recursive: true });
  writeFileSync(join(at.workspaces, 'one', 'a.txt'), 'old');
  at.provider.push(
    callTools([
      { name: 'read_file', arguments: { path: 'a.txt' } },
      { name: 'edit_file', arguments: { path: 'a.txt', old_string: 'old', new_string: 'new' } },
    ]),
    say('Done.'),
  );
  const job = await at.submit('Make it new.', { workspace: 'one' });
  const end = await at.ended(job.session);
  expect(end).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer', endDecidedBy: 'model', endStep: 1 });
  expect(readFileSync(join(at.workspaces, 'one', 'a.txt'), 'utf8')).toBe('new');
  at.provider.assertDone();
  const kinds = (await at.events(job.session)).map(({ event }) => event.kind);
  expect(kinds.slice(0, 13)).toEqual([
    'job.submitted',
    'turn.opened',
    'input.joined',
    'sample.started',
    'stream.ended',
    'call.requested',
    'call.requested',
    'call.finished',
    'call.started',
    'call.finished',
    'batch.ended',
    'sample.started',
    'stream.ended',
  ]);
  expect(kinds).toContain('turn.ended');
  const transcript = await at.transcript(job.session);
  expect(transcript.map((message) => message.kind)).toEqual([
    'user',
    'assistant',
    'tool_result',
    'tool_result',
    'assistant',
  ]);
});
