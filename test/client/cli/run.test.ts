import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Output } from '../../../client/cli/output.ts';
import { runCommand } from '../../../client/cli/run.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-cli-'));
beforeAll(() => {
  vi.stubEnv('PAWL_HOME', join(folder, '.pawl'));
  for (const name of ['DATABASE_URL', 'TEMPORAL_ADDRESS', 'OPENAI_API_KEY', 'OPENAI_BASE_URL'])
    vi.stubEnv(name, undefined);
  writeFileSync(join(folder, 'broken.mjs'), 'export default { agents: [] };');
  writeFileSync(join(folder, 'torn.mjs'), 'export default { agents: [');
  writeFileSync(join(folder, 'throws.mjs'), "throw new Error('no luck');");
  writeFileSync(
    join(folder, 'tool.mjs'),
    "export default { agents: [{ name: 'a', model: 'm', instructions: '', tools: ['fly'] }] };",
  );
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

async function run(...argv: readonly string[]) {
  const said = { out: '', err: '' };
  const output: Output = {
    write: (text) => void (said.out += text),
    line: (line) => void (said.out += `${line}\n`),
    json: (value) => void (said.out += `${JSON.stringify(value)}\n`),
    note: (line) => void (said.err += `${line}\n`),
  };
  return { code: await runCommand(argv, output), ...said };
}

test.each<[readonly string[], RegExp]>([
  [['ps'], /not running.*npm start/],
  [['show', 'job_1'], /not running/],
  [['events', 'job_1'], /not running/],
  [['cancel', 'job_1'], /not running/],
  [['submit', 'fix it'], /not running/],
  [['plan', 'ses_1', 'on'], /not running/],
  [['report', 'job_1', 'build'], /not running/],
  [['report', 'job_1', ' '], /has no name/],
  [['serve'], /not running/],
  [['worker'], /needs its key in OPENAI_API_KEY/],
  [['up', 'fix it'], /needs its key in OPENAI_API_KEY/],
  [['migrate'], /DATABASE_URL/],
  [['ps', '--config', join(folder, 'none.ts')], /no config file/],
  [['ps', '--config', join(folder, 'broken.mjs')], /at least one agent/],
  [['ps', '--config', join(folder, 'torn.mjs')], /can't be loaded/],
  [['ps', '--config', join(folder, 'throws.mjs')], /can't be loaded: no luck/],
  [['ps', '--config', join(folder, 'tool.mjs')], /names the tool fly, which there is not/],
])('%j fails with one sentence', async (argv, sentence) => {
  const { code, out, err } = await run(...argv);
  expect(err).toMatch(sentence);
  expect(err.trimEnd().split('\n')).toHaveLength(1);
  expect(err).not.toMatch(/\n\s+at /);
  expect([code, out]).toEqual([1, '']);
});

test('what the command line itself lacks is a fault of its usage, said in one sentence', async () => {
  const { code, err } = await run('up', '--once');
  expect([code, err]).toEqual([2, 'With --once, give a ticket text (or --demo for the sample ticket).\n']);
});

test.each<[readonly string[], number]>([
  [['nothing'], 2],
  [['submit'], 2],
  [['plan', 'ses_1'], 2],
  [['plan', 'ses_1', 'maybe'], 2],
  [['ps', '--colour'], 2],
  [['serve', '--port', 'http'], 2],
  [['serve', '--port', '70000'], 2],
  [['--help'], 0],
  [['up', '--help'], 0],
])('%j leaves with %d', async (argv, code) => {
  const quiet = [vi.spyOn(process.stdout, 'write'), vi.spyOn(process.stderr, 'write')].map((spy) =>
    spy.mockReturnValue(true),
  );
  try {
    expect((await run(...argv)).code).toBe(code);
  } finally {
    for (const spy of quiet) spy.mockRestore();
  }
});
