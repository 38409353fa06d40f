import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { input, job, session } from '../../../activities/store/schema.ts';
import { lockAddress } from '../../../worker/embedded/home-lock.ts';
import { pawl as typed } from '../../support/command-line.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-bad-input-')));
const home = join(folder, '.pawl');
const root = join(home, 'workspaces');

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
  mkdirSync(join(root, 'inside'), { recursive: true });
  mkdirSync(join(home, 'workspaces-evil'));
  symlinkSync('/', join(root, 'link-out'));
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

const pawl = (args: readonly string[], env: Readonly<Record<string, string>>) => typed(args, { folder, home, env });

const onServers = () => ({ TEMPORAL_ADDRESS: inject('temporalAddress'), DATABASE_URL: database.url });

async function stored(): Promise<number[]> {
  return await Promise.all([job, session, input].map((table) => database.db.$count(table)));
}

it.each<[string, readonly string[], string]>([
  ['an agent that there is not', ['submit', 'x', '--agent', 'nobody'], 'There is no agent nobody; known are engineer.'],
  ...['../workspaces-evil', '/etc', 'link-out'].map((path): [string, readonly string[], string] => [
    `the workspace ${path}`,
    ['submit', 'x', '--workspace', path],
    `The workspace ${path} is outside the workspace root; name a folder inside it.`,
  ]),
  [
    'a workspace that is not there',
    ['submit', 'x', '--workspace', 'none'],
    'The workspace none does not exist under the workspace root; create it first, or leave it out.',
  ],
  [
    'the workspace root itself',
    ['submit', 'x', '--workspace', '.'],
    'The workspace . would hold Pawl’s own files; name a folder of its own.',
  ],
  ['a ticket without a text', ['submit', ' '], 'The ticket has no text.'],
  ['a job that there is not', ['cancel', 'job_0'], 'There is no job job_0; `pawl ps` lists the open ones.'],
  [
    'a session that there is not',
    ['send', 'ses_0', 'x'],
    'There is no session or job ses_0; `pawl sessions` lists the sessions.',
  ],
  [
    'an input that there is not',
    ['withdraw', 'in_0'],
    'There is no input in_0; `pawl inputs <session>` lists those of a session.',
  ],
  ['a fork of nothing', ['fork', 'ses_0', '--at', 'start'], 'There is no session ses_0; `pawl sessions` lists them.'],
  ['an approval that there is not', ['approve', 'a'], 'There is no approval a; `pawl approvals` lists the open ones.'],
])('%s: one sentence, exit code 2, and nothing is stored', async (_name, args, sentence) => {
  expect(await pawl(args, onServers())).toEqual({ code: 2, out: '', err: `${sentence}\n` });
  expect(await stored()).toEqual([0, 0, 0]);
  expect(readdirSync(root).sort()).toEqual(['inside', 'link-out']);
});

// Whoever holds the folder and does not speak as Pawl does may be anything: nothing may be begun beside it.
it('a data folder that somebody else holds: one sentence, exit code 1, and no server is started', async () => {
  const silent = createServer().listen(lockAddress(home));
  await once(silent, 'listening');
  const before = readdirSync(home).sort();
  try {
    const commands = [
      ['up', '--once', 'a ticket'],
      ['submit', 'a ticket'],
    ];
    for (const { code, out, err } of await Promise.all(commands.map((args) => pawl(args, {})))) {
      expect([code, out]).toEqual([1, '']);
      expect(err.trimEnd().split('\n')).toHaveLength(1);
      expect(err).toMatch(/ is held by .*, which does not answer as Pawl within 2 s: end it and start again\.$/m);
    }
  } finally {
    silent.close();
  }
  expect(readdirSync(home).sort()).toEqual([...before, ...(before.includes('logs') ? [] : ['logs'])].sort());
});
