import { readFileSync } from 'node:fs';

/** How the owner of a home names itself. */
export function greeting(): { readonly pawl: 1; readonly pid: number; readonly version: string } {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return { pawl: 1, pid: process.pid, version: (JSON.parse(text) as { version: string }).version };
}
