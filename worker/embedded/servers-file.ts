import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isGone, type ProcessIdentity, thisHost } from '../../activities/process/identity.ts';
import { endProcess } from './end-process.ts';
import { replaceFile } from './home.ts';
import type { ServerName } from './server-process.ts';

const GRACE_MS = 10_000;

interface ServersFile {
  /** A copied folder must not make us end the servers of the original. */
  readonly home: string;
  readonly boot: string;
  readonly servers: Partial<Record<ServerName, ProcessIdentity>>;
}

/** Writes down which process a server is, so that the next start can end it should it be left over. */
export function recordServer(home: string, name: ServerName, identity: ProcessIdentity): void {
  const servers = { ...read(home)?.servers, [name]: identity };
  replaceFile(path(home), JSON.stringify({ home, boot: thisHost().boot, servers } satisfies ServersFile));
}

/** Ends what an earlier owner left behind: its supervisor may be doing so, or may have been killed too. */
export async function endLeftovers(home: string, onProgress: (line: string) => void): Promise<void> {
  const left = Object.entries(read(home)?.servers ?? {}).filter(([, identity]) => !isGone(identity));
  await Promise.all(
    left.map(async ([name, identity]) => {
      onProgress(`waiting for an earlier ${name} to end (process ${identity.pid})`);
      await endProcess(identity, name === 'postgres' ? 'SIGINT' : 'SIGTERM', GRACE_MS);
    }),
  );
}

function read(home: string): ServersFile | null {
  if (!existsSync(path(home))) return null;
  const file = JSON.parse(readFileSync(path(home), 'utf8')) as ServersFile;
  return file.home === home && file.boot === thisHost().boot ? file : null;
}

function path(home: string): string {
  return join(home, 'servers.json');
}
