import { readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { SetupError } from '../../setup-error.ts';

/** The user that PostgreSQL runs as when we are root, which it refuses to be. */
export interface RunAs {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

/** Null: we are not root, so the server runs as ourselves. */
export function postgresUser(): RunAs | null {
  if (process.getuid?.() !== 0) return null;
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  for (const name of ['postgres', 'nobody']) {
    const user = users.find((fields) => fields[0] === name);
    if (user) return { name, uid: Number(user[2]), gid: Number(user[3]) };
  }
  throw new SetupError('PostgreSQL refuses to run as root: add a user named "postgres", or set DATABASE_URL.');
}

/** Whether the mode bits let this user enter the folder (or run the file), through all that is above it. */
export function mayEnter(user: RunAs | null, path: string): boolean {
  if (user === null) return true;
  for (let at = realpathSync(path); ; at = dirname(at)) {
    if (!searchable(user, at)) return false;
    if (at === dirname(at)) return true;
  }
}

function searchable(user: RunAs, path: string): boolean {
  const { uid, gid, mode } = statSync(path);
  const bits = uid === user.uid ? mode >> 6 : gid === user.gid ? mode >> 3 : mode;
  return (bits & 1) === 1;
}
