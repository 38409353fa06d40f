import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { HookFacts } from '../../activities/gate/hook-types.ts';
import { createHooks, type Hooks } from '../../activities/gate/hooks.ts';
import definition from '../../examples/hooks.config.ts';
import { resolveConfig } from '../../worker/config/load.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-examples-'));
const workspace = join(folder, 'workspace');
const never = new AbortController().signal;
let hooks: Hooks;
beforeAll(() => {
  vi.stubEnv('HOOK_NOTES', join(folder, 'notes.jsonl'));
  cpSync(fileURLToPath(new URL('../../examples/hooks', import.meta.url)), join(folder, 'hooks'), { recursive: true });
  execFileSync('git', ['init', '-q', workspace]);
  hooks = createHooks(definition.hooks ?? [], folder);
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const facts = (more: Partial<HookFacts>): HookFacts => ({ session: 's', turn: 's/1', workspace, ...more });
const shell = (command: string) => facts({ tool: 'shell', args: { command } });

it('is a config that can be used', () => {
  expect(resolveConfig(definition, join(folder, 'pawl.config.ts')).agents).toHaveLength(1);
});

it.each([
  ['git push --force', { deny: 'Force pushes are done by people.', rewrite: null }],
  ['npm install', { deny: null, rewrite: '{"command":"npm ci"}' }],
  ['git push', { deny: null, rewrite: null }],
])('PreToolUse: %s', async (command, said) => {
  expect(await hooks.ask('PreToolUse', shell(command), never)).toEqual({ ...said, failures: [] });
});

it.each([
  ['Fix the test.', null],
  ['-----BEGIN RSA PRIVATE KEY-----', 'There is a private key in this ticket: take it out, and make a new one.'],
])('UserPromptSubmit: %s', async (text, deny) => {
  expect(await hooks.ask('UserPromptSubmit', facts({ text }), never)).toEqual({ deny, rewrite: null, failures: [] });
});

it('StopGate: passes, blocks once, and stops', async () => {
  const ask = (stopHookActive: boolean) => hooks.askStop(facts({ stopHookActive }), never);
  expect(await ask(false)).toEqual({ kind: 'pass', failures: [] });
  writeFileSync(join(workspace, 'a.txt'), 'a');
  expect(await ask(false)).toMatchObject({
    kind: 'block',
    reason: 'Commit these changes, or take them back:\n?? a.txt\n',
    failures: [],
  });
  expect(await ask(true)).toEqual({ kind: 'pass', failures: [] });
  writeFileSync(join(workspace, 'STOP'), '');
  expect(await ask(true)).toMatchObject({ kind: 'stop', why: 'Somebody put a STOP file there.', failures: [] });
});

it('reports are written down', async () => {
  const kinds = [
    'PostToolUseFailure',
    'PermissionDenied',
    'Stop',
    'StopFailure',
    'StopCancelled',
    'SessionEnd',
  ] as const;
  for (const kind of kinds) expect(await hooks.report(kind, facts({ id: `id of ${kind}` }))).toEqual([]);
  const read = (name: string) =>
    readFileSync(join(folder, name), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { event: string }).event);
  expect(read('notes.jsonl')).toEqual(kinds.slice(0, 5));
  expect(read('goodbyes.jsonl')).toEqual(['SessionEnd']);
});
