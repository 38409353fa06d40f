import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, inject, it } from 'vitest';
import { type Config, resolveConfig } from '../../worker/config/load.ts';
import { requireSharedRoot } from '../../worker/shared-root.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

const PAWL = fileURLToPath(new URL('../../bin/pawl.js', import.meta.url));
const MARK = '.pawl-root';

let database: TestDatabase;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-root-'));
  database = await testDatabase();
});
afterAll(async () => {
  await database.close();
  rmSync(folder, { recursive: true, force: true });
});

let queues = 0;
let taskQueue: string;
beforeEach(() => {
  queues += 1;
  taskQueue = `q${queues}`;
});

const rootOf = (machine: string) => join(folder, taskQueue, machine);

function check(machine: string, change: Partial<Config> = {}): Promise<void> {
  const base = resolveConfig({ agents: [{ name: 'a', model: 'm', instructions: '', tools: [] }] }, null);
  const shared = { workspaceKind: 'shared', temporalAddress: 'there:7233', taskQueue, workspaceRoot: rootOf(machine) };
  return requireSharedRoot({ database, config: { ...base, ...shared, ...change } as Config });
}

it('the first worker marks the root; others pass that have the same, however they reach it', async () => {
  await Promise.all(['one', 'one', 'one'].map((machine) => check(machine)));
  symlinkSync(rootOf('one'), rootOf('mounted'));
  await check('mounted');
  expect(readFileSync(join(rootOf('mounted'), MARK), 'utf8')).toMatch(/^[0-9a-f-]{36}\n$/);
});

it('a worker whose root lacks the mark, or has another, is told in one sentence', async () => {
  await check('one');
  mkdirSync(rootOf('empty'));
  const sentence = (what: string, machine: string) =>
    `The workspace root ${rootOf(machine)} is not the one that the other workers share: it ${what}. Mount the shared folder there, or set workspaceKind: 'host'.`;
  await expect(check('empty')).rejects.toThrow(sentence('lacks the file .pawl-root', 'empty'));
  await expect(check('missing')).rejects.toThrow(sentence('lacks the file .pawl-root', 'missing'));
  writeFileSync(join(rootOf('empty'), MARK), 'root_of_somebody_else\n');
  await expect(check('empty')).rejects.toThrow(sentence('has the .pawl-root of another installation', 'empty'));
});

// Trap: a mark that is remembered and was never written would lock every worker out.
it('a root that can not be marked is not remembered, and the mark of another stays', async () => {
  mkdirSync(rootOf('taken'), { recursive: true });
  writeFileSync(join(rootOf('taken'), MARK), 'root_of_somebody_else\n');
  await expect(check('taken')).rejects.toThrow(/can't be shared: it has the \.pawl-root of another installation\./);
  expect(readFileSync(join(rootOf('taken'), MARK), 'utf8')).toBe('root_of_somebody_else\n');
  await check('fresh');
});

it.each<[string, Partial<Config>]>([
  ['files of one machine', { workspaceKind: 'host' }],
  ['the embedded servers', { temporalAddress: null }],
])('%s need no mark', async (_, change) => {
  await check('one', change);
  await check('two', change);
});

it('the command leaves with one sentence, and takes no work', async () => {
  await check('one');
  const config = join(folder, 'pawl.config.mjs');
  const definition = { workspaceKind: 'shared', workspaceRoot: rootOf('elsewhere'), taskQueue };
  const agents = [{ name: 'a', model: 'm', instructions: '', tools: [] }];
  writeFileSync(config, `export default ${JSON.stringify({ ...definition, agents })};`);
  const servers = { TEMPORAL_ADDRESS: inject('temporalAddress'), DATABASE_URL: database.url, OPENAI_API_KEY: 'none' };
  const child = spawn(process.execPath, [PAWL, 'worker', '--config', config], {
    env: { PATH: process.env.PATH, HOME: folder, PAWL_HOME: join(folder, '.pawl'), ...servers },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number];
  expect([code, out]).toEqual([1, '']);
  expect(err).toMatch(/^The workspace root .* is not the one that the other workers share: it lacks .*\n$/);
});
