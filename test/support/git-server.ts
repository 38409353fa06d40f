import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

/** What becomes of the answer to a push that was carried out. */
export type PushFault = 'none' | 'answer_lost' | 'gateway';

/** A real git repository behind real http, which asks for a token: git's own `http-backend` does the work. */
export interface GitServer {
  readonly url: string;
  /** The same repository as a folder. */
  readonly path: string;
  /** Commit of a branch there, or null. */
  head(branch: string): string | null;
  /** Requests that would change something. */
  pushes(): number;
  /** For the next push. */
  fault(fault: PushFault): void;
  git(...args: readonly string[]): string;
  close(): Promise<void>;
}

export async function startGitServer(folder: string, token: string): Promise<GitServer> {
  const repository = join(folder, 'acme', 'app.git');
  mkdirSync(repository, { recursive: true });
  const git = (...args: readonly string[]) =>
    execFileSync('git', [...args], { cwd: repository, encoding: 'utf8', env: { PATH: process.env.PATH } }).trim();
  git('init', '--bare', '--quiet', '--initial-branch=main', '.');
  git('config', 'http.receivepack', 'true');
  let pushes = 0;
  let fault: PushFault = 'none';
  const wanted = `Basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
  const server = createServer((request, response) => {
    if (request.headers.authorization !== wanted) {
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="forge"' }).end();
    }
    const isPush = request.method === 'POST' && (request.url ?? '').endsWith('/git-receive-pack');
    if (isPush) pushes += 1;
    const lost = isPush ? fault : 'none';
    if (isPush) fault = 'none';
    void serve(folder, request, response, lost);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/acme/app.git`,
    path: repository,
    head: (branch) => git('for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`) || null,
    pushes: () => pushes,
    fault: (next) => {
      fault = next;
    },
    git,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function serve(
  root: string,
  request: IncomingMessage,
  response: ServerResponse,
  fault: PushFault,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://forge');
  const cgi = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env.PATH,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      REQUEST_METHOD: request.method,
      PATH_INFO: url.pathname,
      QUERY_STRING: url.search.slice(1),
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      REMOTE_USER: 'tester',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  cgi.stdin.on('error', () => {});
  request.pipe(cgi.stdin);
  const parts: Buffer[] = [];
  for await (const part of cgi.stdout) parts.push(part as Buffer);
  if (fault === 'answer_lost') return void request.socket.destroy();
  if (fault === 'gateway') return void response.writeHead(504).end();
  const whole = Buffer.concat(parts);
  const gap = whole.indexOf('\r\n\r\n');
  const lines = whole.toString('latin1', 0, gap).split('\r\n');
  const headers = Object.fromEntries(lines.map((line) => line.split(/:\s*/, 2) as [string, string]));
  const { Status: status = '200', ...rest } = headers;
  response.writeHead(Number.parseInt(status, 10), rest).end(whole.subarray(gap + 4));
}
