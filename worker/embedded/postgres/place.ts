import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SetupError } from '../../setup-error.ts';
import { homeHash, replaceFile } from '../home.ts';
import { postgresBinaries } from './binaries.ts';
import { mayEnter, postgresUser, type RunAs } from './run-as.ts';

const SHARED = '/var/lib/pawl';
const SOCKET_NAME = '.s.PGSQL.5432';
/** The system's limit for a Unix socket's path is 104 bytes on some systems. */
const MAX_SOCKET_PATH = 99;

export interface PostgresPlace {
  readonly user: RunAs | null;
  /** Holds bin/, lib/ and share/. */
  readonly native: string;
  readonly dataDir: string;
  readonly socketDir: string;
}

/** Where the database of this home lives; the answer is the same for ever, whatever the modes become. */
export function choosePlace(home: string): PostgresPlace {
  const user = postgresUser();
  const folder = user === null ? home : folderFor(user, home);
  return {
    user,
    native: postgresBinaries(user, user === null ? join(homedir(), '.cache', 'pawl') : SHARED),
    dataDir: join(folder, 'postgres'),
    socketDir: socketFolder(user, home, folder),
  };
}

/** A note in the home says where the data went, when the server's user can't enter the home. */
function folderFor(user: RunAs, home: string): string {
  const note = join(home, 'postgres-location.json');
  if (existsSync(note)) {
    const { folder } = JSON.parse(readFileSync(note, 'utf8')) as { folder: string };
    if (existsSync(folder)) return folder;
    throw new SetupError(
      `The database of ${home} was in ${folder}, which is gone: bring it back, or remove ${note} to begin with an empty one.`,
    );
  }
  if (mayEnter(user, home)) return home;
  if (existsSync(join(home, 'postgres'))) {
    throw new SetupError(
      `User ${user.name} can no longer enter ${home}: give the folder and those above it the right to be entered (chmod o+x).`,
    );
  }
  const folder = join(SHARED, homeHash(home));
  mkdirSync(folder, { recursive: true, mode: 0o711 });
  chmodSync(SHARED, 0o755);
  if (!mayEnter(user, folder)) {
    throw new SetupError(
      `User ${user.name} can enter neither ${home} nor ${folder}: put PAWL_HOME elsewhere, or set DATABASE_URL.`,
    );
  }
  const why = `PostgreSQL runs as user ${user.name}, who may not enter this folder: its data is there`;
  replaceFile(note, JSON.stringify({ folder, why }, null, 2));
  return folder;
}

function socketFolder(user: RunAs | null, home: string, folder: string): string {
  const short = `pawl-${homeHash(home)}`;
  const candidates = [join(folder, 'socket'), join(tmpdir(), short), join('/tmp', short)];
  const fits = candidates.find(
    (path) => join(path, SOCKET_NAME).length <= MAX_SOCKET_PATH && mayEnter(user, dirname(path)),
  );
  if (fits === undefined) throw new SetupError(`No folder for the database's socket: the path ${home} is too long.`);
  return privateFolder(fits, user);
}

/** A folder that only the server's user may enter. Somebody else's folder of that name is refused. */
function privateFolder(path: string, user: RunAs | null): string {
  if (!existsSync(path)) {
    mkdirSync(path, { mode: 0o700 });
    if (user !== null) chownSync(path, user.uid, user.gid);
  }
  const { uid, mode } = lstatSync(path);
  const owner = user?.uid ?? process.getuid?.();
  if (!lstatSync(path).isDirectory() || (owner !== undefined && uid !== owner) || (mode & 0o077) !== 0) {
    throw new SetupError(`${path} must be a folder of the database's user with mode 0700: remove it and start again.`);
  }
  return path;
}
