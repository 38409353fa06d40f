import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { workflowBundle } from '../../worker/bundle.ts';
import { startEmbedded } from '../../worker/embedded/start.ts';
import { removeDatabase } from './remove-database.ts';

declare module 'vitest' {
  interface ProvidedContext {
    temporalAddress: string;
    /** A superuser on a server where each test file makes a database of its own. */
    databaseUrl: string;
    bundleCache: string;
  }
}

/** One Temporal server and one PostgreSQL for the whole run; `DATABASE_URL` names another PostgreSQL. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const home = mkdtempSync(join(tmpdir(), 'pawl-test-'));
  const given = process.env.DATABASE_URL;
  const servers = await startEmbedded({ home, ...(given ? { databaseUrl: given } : {}), onProgress: () => {} });
  const bundleCache = join(home, 'cache');
  await workflowBundle(bundleCache);
  project.provide('temporalAddress', servers.temporalAddress);
  project.provide('databaseUrl', servers.databaseUrl);
  project.provide('bundleCache', bundleCache);
  return async () => {
    await servers.stop();
    removeDatabase(home);
    rmSync(home, { recursive: true, force: true });
  };
}
