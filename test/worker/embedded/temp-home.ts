import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { removeDatabase } from '../../support/remove-database.ts';

/** A home in a fresh 0700 folder, which another uid can't enter. */
export function makeTempHome(): { home: string; remove(): void } {
  const outer = mkdtempSync(join(tmpdir(), 'pawl-embedded-'));
  const home = join(outer, '.pawl');
  const remove = () => {
    removeDatabase(home);
    rmSync(outer, { recursive: true, force: true });
  };
  return { home, remove };
}

export async function until(condition: () => boolean | Promise<boolean>, withinMs = 15_000): Promise<void> {
  for (const end = Date.now() + withinMs; !(await condition()); await sleep(20)) {
    if (Date.now() > end) throw new Error(`not within ${withinMs} ms: ${condition}`);
  }
}

/** Runs SQL, trying again while the server is away. */
export async function sql(connectionString: string, text: string): Promise<unknown[]> {
  for (const end = Date.now() + 15_000; ; await sleep(20)) {
    const client = new pg.Client({ connectionString });
    client.on('error', () => {});
    try {
      await client.connect();
      return (await client.query(text)).rows;
    } catch (error) {
      if (Date.now() > end || !isAway(error)) throw error;
    } finally {
      await client.end().catch(() => {});
    }
  }
}

/** No socket, a lost connection (no code), or a server that starts or stops. */
function isAway(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === undefined || /^(E[A-Z]+|57P0.)$/.test(code);
}
