import { existsSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { homeHash } from './home.ts';

const ANSWER_WITHIN_MS = 2_000;
/** The longest there is: Node 20 fills shorter names with zeros and Node 22 does not, so they would miss each other. */
const ABSTRACT_NAME_LENGTH = 107;

/** What the owner of a home tells whoever asks; one JSON line for each connection. No secrets. */
export type Holder = { readonly pawl: 1; readonly pid: number; readonly version: string } & (
  | { readonly status: 'starting' | 'stopping' }
  | ({ readonly status: 'running' } & HolderFacts)
);

export interface HolderFacts {
  readonly temporalAddress: string;
  readonly temporalUiUrl: string | null;
  /** Null: the database was given as DATABASE_URL. */
  readonly socketDir: string | null;
  readonly apiUrl: string | null;
}

export interface HomeLock {
  answer(holder: Holder): void;
  release(): Promise<void>;
}

/**
 * The one lock on a home, or null if it is taken. On Linux it is an abstract Unix socket, which ends with its process
 * and leaves no file; elsewhere a socket file, dead if nobody answers there.
 */
export async function takeLock(home: string, first: Holder): Promise<HomeLock | null> {
  const address = lockAddress(home);
  let holder = first;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(`${JSON.stringify(holder)}\n`);
  });
  if (!(await listen(server, address)) && !((await removeIfDead(address)) && (await listen(server, address))))
    return null;
  server.unref();
  return {
    answer: (next) => {
      holder = next;
    },
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** The holder's answer; `free` if nobody holds the lock, `silent` if the holder does not answer as Pawl does. */
export function askHolder(home: string): Promise<Holder | 'free' | 'silent'> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(lockAddress(home));
    socket.setTimeout(ANSWER_WITHIN_MS);
    const timer = setTimeout(() => done('silent'), ANSWER_WITHIN_MS);
    const done = (answer: Holder | 'free' | 'silent') => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    socket.on('error', (error: NodeJS.ErrnoException) => done(isNobody(error) ? 'free' : 'silent'));
    socket.on('data', (chunk) => {
      text += chunk.toString('utf8');
      if (text.includes('\n') || text.length > 10_000) done(parse(text));
    });
    socket.on('end', () => done(parse(text)));
  });
}

export function lockAddress(home: string): string {
  const name = `pawl-${homeHash(home)}`;
  if (process.platform === 'linux') return `\0${name.padEnd(ABSTRACT_NAME_LENGTH, '-')}`;
  if (process.platform === 'win32') return `\\\\.\\pipe\\${name}`;
  const inHome = join(home, 'lock');
  return inHome.length < 100 ? inHome : join(tmpdir(), name);
}

function parse(text: string): Holder | 'silent' {
  try {
    const answer = JSON.parse(text.split('\n')[0] ?? '') as Holder;
    return answer.pawl === 1 ? answer : 'silent';
  } catch {
    return 'silent';
  }
}

function isNobody(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNREFUSED' || error.code === 'ENOENT' || error.code === 'ECONNRESET';
}

function listen(server: Server, address: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error));
    server.once('error', failed);
    server.listen(address, () => {
      server.off('error', failed);
      resolve(true);
    });
  });
}

/** A socket file stays when its process is killed. */
function removeIfDead(address: string): Promise<boolean> {
  if (!address.startsWith('/') || !existsSync(address)) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect(address, () => {
      socket.destroy();
      resolve(false);
    });
    socket.on('error', () => {
      rmSync(address, { force: true });
      resolve(true);
    });
  });
}
