import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import type { ProviderDefinition } from '../../../worker/config/define.ts';
import { keysInFiles, readKey, requireKeysOf, resolveProviders } from '../../../worker/config/providers.ts';

const folder = mkdtempSync(join(tmpdir(), 'pawl-providers-'));
const keyFile = join(folder, 'key');
afterEach(() => vi.unstubAllEnvs());
afterAll(() => rmSync(folder, { recursive: true }));

const baseUrl = 'http://127.0.0.1:1/v1';
const resolved = (definition: ProviderDefinition, file: string | null = null) =>
  resolveProviders({ agents: [], providers: { p: { baseUrl, ...definition } } }, file).p!;
const required = (definition: ProviderDefinition) => () =>
  requireKeysOf({ agents: [{ provider: 'p' }], providers: { p: resolved(definition) } });

test('what a provider is, where it says nothing', () => {
  expect(resolved({})).toEqual({
    name: 'p',
    baseUrl,
    wire: 'chat',
    schemas: 'openai',
    reasoning: 'send',
    structuredOutput: 'tool',
    key: { kind: 'variable', name: 'OPENAI_API_KEY' },
  });
});

test.each<[ProviderDefinition, object]>([
  [{ apiKeyEnv: null }, { kind: 'none' }],
  [{ apiKeyEnv: 'OTHER' }, { kind: 'variable', name: 'OTHER' }],
  [{ apiKeyFile: 'keys/p' }, { kind: 'file', path: '/etc/pawl/keys/p' }],
  [{ apiKeyFile: '/run/p' }, { kind: 'file', path: '/run/p' }],
])('%j: where its key is', (definition, key) => {
  expect(resolved(definition, '/etc/pawl/pawl.config.ts').key).toEqual(key);
});

test('two sources are one too many', () => {
  expect(() => resolved({ apiKeyEnv: 'A', apiKeyFile: 'b' })).toThrow(
    'Provider p has both apiKeyEnv and apiKeyFile; leave one of them out.',
  );
});

test('a key is read anew each time, without the line end that editors add', () => {
  const { key } = resolved({ apiKeyFile: keyFile });
  writeFileSync(keyFile, 'first-key\n');
  expect(readKey(key)).toBe('first-key');
  writeFileSync(keyFile, 'second-key\n');
  expect(readKey(key)).toBe('second-key');
  expect(keysInFiles({ p: resolved({ apiKeyFile: keyFile }) })).toEqual({ p_KEY: 'second-key' });
});

test('no worker starts without a key', () => {
  vi.stubEnv('MISSING_KEY', '');
  expect(required({ apiKeyEnv: 'MISSING_KEY' })).toThrow('needs its key in MISSING_KEY, which is not set');
  expect(required({ apiKeyFile: join(folder, 'none') })).toThrow(/needs its key in the file .*none, which has none/);
  writeFileSync(keyFile, ' \n');
  expect(required({ apiKeyFile: keyFile })).toThrow('which has none');
  expect(keysInFiles({ p: resolved({ apiKeyFile: join(folder, 'none') }) })).toEqual({ p_KEY: undefined });
});
