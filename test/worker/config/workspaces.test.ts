import { readFileSync } from 'node:fs';
import { afterEach, expect, test, vi } from 'vitest';
import { DEFAULT_DEFINITION } from '../../../worker/config/default.ts';
import { resolveConfig } from '../../../worker/config/load.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

const resolved = (env: Readonly<Record<string, string>>) => {
  for (const [name, value] of Object.entries({ TEMPORAL_ADDRESS: '', ...env })) vi.stubEnv(name, value);
  const { workspaceKind, workspaceRoot } = resolveConfig(DEFAULT_DEFINITION, null);
  return [workspaceKind, workspaceRoot.split('/').at(-1)];
};

test('with the embedded servers the folders are shared by nature, on a cluster they are a host’s', () => {
  expect(resolved({})).toEqual(['shared', 'workspaces']);
  expect(resolved({ TEMPORAL_ADDRESS: 'temporal:7233' })).toEqual(['host', 'workspaces']);
});

test('a kind that there is not is refused', () => {
  expect(() => resolved({ PAWL_WORKSPACE_KIND: 'nfs' })).toThrow(
    'PAWL_WORKSPACE_KIND is nfs; it must be host or shared.',
  );
});

// Trap: API and workers are different containers, so a folder of one of them is nobody else's.
test('the containers share one mount', () => {
  const compose = readFileSync(new URL('../../../docker-compose.yml', import.meta.url), 'utf8');
  const set = (name: string) => new RegExp(`^ {4}${name}: (\\S+)$`, 'm').exec(compose)?.[1] ?? '';
  const mount = /^ {4}- workspaces:(\S+)$/m.exec(compose)?.[1];
  expect(set('PAWL_WORKSPACES')).toBe(mount);
  const env = Object.fromEntries(
    ['PAWL_WORKSPACES', 'PAWL_WORKSPACE_KIND', 'TEMPORAL_ADDRESS'].map((name) => [name, set(name)]),
  );
  expect(resolved(env)).toEqual(['shared', 'workspaces']);
});
