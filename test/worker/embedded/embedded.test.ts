import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startedAt } from '../../../activities/process/identity.ts';
import type { EmbeddedServers } from '../../../worker/embedded/contract.ts';
import { startEmbedded, whoRuns } from '../../../worker/embedded/start.ts';
import { ensureSearchAttributes, SEARCH_ATTRIBUTES } from '../../../worker/embedded/temporal/search-attributes.ts';
import { makeTempHome, sql, until } from './temp-home.ts';

const { home, remove } = makeTempHome();
const lines: string[] = [];
const onProgress = (line: string) => void lines.push(line);
let servers: EmbeddedServers;

beforeAll(async () => {
  servers = await startEmbedded({ home, onProgress });
}, 30_000);

afterAll(async () => {
  await servers.stop();
  remove();
}, 30_000);

test('the database listens on a private Unix socket only, with a password', async () => {
  expect(await sql(servers.databaseUrl, 'SHOW listen_addresses')).toEqual([{ listen_addresses: '' }]);
  expect(await sql(servers.databaseUrl, 'SHOW fsync')).toEqual([{ fsync: 'on' }]);
  const socketDir = new URL(servers.databaseUrl.replace('@/', '@x/')).searchParams.get('host') ?? '';
  expect(statSync(socketDir).mode & 0o777).toBe(0o700);
  expect(statSync(join(home, 'secrets')).mode & 0o777).toBe(0o600);
  await expect(sql(servers.databaseUrl.replace(/:[0-9a-f]{64}@/, ':wrong@'), 'SELECT 1')).rejects.toThrow(/password/);
}, 30_000);

test.runIf(process.getuid?.() === 0)('as root the server is another user, and a note says where its data is', () => {
  expect(statSync(`/proc/${servers.pids().postgres}`).uid).not.toBe(0);
  expect(existsSync(join(home, 'postgres'))).toBe(false);
  expect(existsSync(join(home, 'postgres-location.json'))).toBe(true);
});

test('the namespace has the search attributes, and lacking ones are added', async () => {
  const connection = await Connection.connect({ address: servers.temporalAddress });
  const request = { namespace: 'default' };
  await connection.operatorService.removeSearchAttributes({ ...request, searchAttributes: ['PawlTicket'] });
  await ensureSearchAttributes(connection);
  const { customAttributes } = await connection.operatorService.listSearchAttributes(request);
  expect(SEARCH_ATTRIBUTES.map((name) => customAttributes?.[name])).toEqual(SEARCH_ATTRIBUTES.map(() => 2));
  await connection.close();
});

test('a second start joins, learns what was published, and its stop leaves the servers alone', async () => {
  servers.publish({ apiUrl: 'http://127.0.0.1:1' });
  const joined = await startEmbedded({ home, onProgress });
  expect(joined).toMatchObject({
    owner: false,
    temporalAddress: servers.temporalAddress,
    databaseUrl: servers.databaseUrl,
    apiUrl: 'http://127.0.0.1:1',
  });
  await joined.stop();
  expect(await sql(joined.databaseUrl, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  expect(JSON.stringify(await whoRuns(home))).not.toContain(/:([0-9a-f]{64})@/.exec(servers.databaseUrl)?.[1]);
});

test('a database server that is killed is started again on the same files', async () => {
  await sql(servers.databaseUrl, 'CREATE TABLE kept AS SELECT 7 AS n');
  const before = servers.pids().postgres ?? 0;
  process.kill(before, 'SIGKILL');
  await until(() => servers.pids().postgres !== before);
  expect(await sql(servers.databaseUrl, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
}, 30_000);

test('a Temporal server that is killed is started again at the same address with its workflows', async () => {
  const connection = await Connection.connect({ address: servers.temporalAddress });
  const { workflow } = new Client({ connection });
  const handle = await workflow.start('anything', { taskQueue: 'nobody', workflowId: 'kept' });
  const before = servers.pids().temporal ?? 0;
  process.kill(before, 'SIGKILL');
  await until(() => servers.pids().temporal !== before);
  await until(async () => (await handle.describe().catch(() => null))?.status.name === 'RUNNING');
  expect(lines.filter((line) => line.startsWith('temporal'))).toEqual([
    'temporal ended (SIGKILL): starting it again',
    expect.stringMatching(/^temporal runs again/),
  ]);
  await connection.close();
}, 30_000);

test('servers that were given are not started', async () => {
  const other = makeTempHome();
  const given = { temporalAddress: 'temporal.example:7233', databaseUrl: 'postgresql://db.example/pawl' };
  const outside = await startEmbedded({ home: other.home, ...given, onProgress });
  expect(outside).toMatchObject({ ...given, owner: true, temporalUiUrl: null });
  expect(outside.pids()).toEqual({});
  await expect(startEmbedded({ home: other.home, onProgress })).rejects.toThrow(/set the same DATABASE_URL/);
  await outside.stop();
  other.remove();
});

test('stop ends both servers and frees the home', async () => {
  const other = makeTempHome();
  const first = await startEmbedded({ home: other.home, onProgress });
  const { temporal, postgres } = first.pids();
  await first.stop();
  expect([temporal, postgres].map((pid) => startedAt(pid ?? 0))).toEqual([null, null]);
  expect(await whoRuns(other.home)).toBeNull();
  other.remove();
}, 30_000);
