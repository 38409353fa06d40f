import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { testDatabase } from '../../support/database.ts';
import { removeDatabase } from '../../support/remove-database.ts';

const MAIN = fileURLToPath(new URL('../../../client/cli/main.ts', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'pawl-demo-'));
afterAll(() => {
  removeDatabase(join(home, '.pawl'));
  rmSync(home, { recursive: true, force: true });
});

/** What `npm start` runs, as a process of its own. */
async function start(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, ['--import', 'tsx', MAIN, 'up', '--demo', ...args], {
    env: { PATH, HOME, PAWL_HOME: join(home, '.pawl'), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number];
  return { code, out, err };
}

function samples(): string[] {
  const root = join(home, '.pawl', 'workspaces');
  return readdirSync(root).map((name) => join(root, name));
}

function repaired(folder: string): boolean {
  const log = execFileSync('git', ['log', '--oneline'], { cwd: folder, encoding: 'utf8' });
  execFileSync(process.execPath, ['--test'], { cwd: folder, stdio: 'pipe' });
  return log.includes('slugify keeps the base letter');
}

// Two starts of everything.
it('the sample ticket is worked on to its end, and a second start knows of it', { timeout: 120_000 }, async () => {
  const first = await start(['--once']);
  expect(first.err).not.toMatch(/\n\s+at /);
  expect(first.code).toBe(0);
  expect(first.out).toMatch(/Model replies are SCRIPTED/);
  expect(first.out).toMatch(/■ COMPLETED\/final_answer, decided by the model/);
  expect(samples().map(repaired)).toEqual([true]);
  const job = /job_\w+/.exec(first.out)?.[0];
  const second = await start(['--once']);
  expect(second.code).toBe(0);
  expect(second.out).toMatch(new RegExp(`Jobs from before:\\n\\s+${job}  done COMPLETED`));
});

it('a ticket of one’s own is told that there is only a script', async () => {
  const { code, out } = await start(['--once', 'Write a poem.']);
  expect(code).toBe(0);
  expect(out).toMatch(/I am a script, not a model/);
});

it('the same with a PostgreSQL of one’s own', async () => {
  const database = await testDatabase();
  await database.close();
  const before = samples();
  const { code, out } = await start(['--once'], { DATABASE_URL: database.url });
  expect(code).toBe(0);
  const made = samples().filter((folder) => !before.includes(folder));
  expect(made.map(repaired)).toEqual([true]);
  expect(out).toMatch(/PostgreSQL {2}DATABASE_URL/);
  expect(out).toMatch(/■ COMPLETED/);
});

it.each<[string, readonly string[], Readonly<Record<string, string>>, RegExp]>([
  [
    'no Temporal server where it was said to be',
    ['--once'],
    { TEMPORAL_ADDRESS: '127.0.0.1:1' },
    /no Temporal server at 127\.0\.0\.1:1/,
  ],
  [
    'no PostgreSQL where it was said to be',
    ['--once'],
    { DATABASE_URL: 'postgresql://pawl@127.0.0.1:1/pawl' },
    /PostgreSQL can't be reached/,
  ],
])('%s: one sentence, and an exit code', async (_name, args, env, sentence) => {
  const { code, err } = await start(args, env);
  expect(code).toBe(1);
  expect(err.trimEnd().split('\n').at(-1)).toMatch(sentence);
  expect(err).not.toMatch(/\n\s+at /);
});

it('a busy port that was asked for by name: one sentence, and an exit code', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const { code, err } = await start(['--once', '--port', String(port)]);
  server.close();
  expect(code).toBe(1);
  expect(err.trimEnd().split('\n').at(-1)).toMatch(new RegExp(String(port)));
});
