import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client, Connection } from '@temporalio/client';
import { expect, test } from 'vitest';
import { startedAt } from '../../../activities/process/identity.ts';
import { startEmbedded } from '../../../worker/embedded/start.ts';
import { makeTempHome, sql, until } from './temp-home.ts';

const BOOT = fileURLToPath(new URL('./boot.ts', import.meta.url));

interface Booted {
  readonly child: ChildProcess;
  readonly temporalAddress: string;
  readonly databaseUrl: string;
  readonly pids: { readonly temporal: number; readonly postgres: number };
}

async function boot(home: string): Promise<Booted> {
  const child = spawn(process.execPath, ['--import', 'tsx', BOOT, home], { stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) return { child, ...JSON.parse(line) };
  throw new Error('the child ended');
}

test('the servers end when their owner is killed, and the next start finds the data', async () => {
  const { home, remove } = makeTempHome();
  const first = await boot(home);
  await sql(first.databaseUrl, 'CREATE TABLE kept AS SELECT 7 AS n');
  const connection = await Connection.connect({ address: first.temporalAddress });
  await new Client({ connection }).workflow.start('anything', { taskQueue: 'nobody', workflowId: 'kept' });
  await connection.close();

  first.child.kill('SIGKILL');
  await until(() => startedAt(first.pids.temporal) === null && startedAt(first.pids.postgres) === null);

  const again = await startEmbedded({ home, onProgress: () => {} });
  expect(await sql(again.databaseUrl, 'SELECT n FROM kept')).toEqual([{ n: 7 }]);
  const reconnected = await Connection.connect({ address: again.temporalAddress });
  const { status } = await new Client({ connection: reconnected }).workflow.getHandle('kept').describe();
  expect(status.name).toBe('RUNNING');
  await reconnected.close();
  await again.stop();
  remove();
}, 40_000);

// The owner and both supervisors die: nobody is left to end the servers but the next start.
test('a start right after the kill of owner and supervisors ends the left-over servers first', async () => {
  const { home, remove } = makeTempHome();
  const first = await boot(home);
  const supervisors = await parents([first.pids.temporal, first.pids.postgres]);
  for (const pid of supervisors) process.kill(pid, 'SIGKILL');
  first.child.kill('SIGKILL');
  const lines: string[] = [];
  const again = await startEmbedded({ home, onProgress: (line) => void lines.push(line) });
  expect(lines.filter((line) => line.startsWith('waiting for an earlier')).length).toBeGreaterThan(0);
  expect(startedAt(first.pids.temporal)).toBeNull();
  expect(await sql(again.databaseUrl, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  await again.stop();
  remove();
}, 40_000);

async function parents(pids: readonly number[]): Promise<number[]> {
  const { readFile } = await import('node:fs/promises');
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, 'utf8')));
  return stats.map((stat) => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
}
