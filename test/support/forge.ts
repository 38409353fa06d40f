import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** What goes wrong with the first request for a branch; the ones after it are answered as they should be. */
export type ForgeFault =
  | { readonly kind: 'none' }
  /** A gateway gives up; behind it the pull request was opened, or not. */
  | { readonly kind: 'gateway'; readonly status: 500 | 502 | 503 | 504; readonly commits: boolean }
  /** The connection is closed without an answer. */
  | { readonly kind: 'closes'; readonly commits: boolean }
  /** It is opened so much later, and nobody is told. */
  | { readonly kind: 'late'; readonly afterMs: number }
  /** The head of a good answer comes through, and half of the body. */
  | { readonly kind: 'cut' }
  /** It waits until `release`, then opens it and answers. */
  | { readonly kind: 'held'; readonly released: Promise<void> };

export interface ForgePull {
  readonly number: number;
  readonly branch: string;
  readonly title: string;
}

/** A code forge as far as pull requests go. It never refuses a second one of a branch: each would be counted. */
export interface Forge {
  readonly url: string;
  /** `released`: the first request waits for that before anything becomes of it. */
  fault(branch: string, fault: ForgeFault, released?: Promise<void>): void;
  /** From now on it can't say what a branch has. */
  forget(branch: string): void;
  pulls(branch: string): readonly ForgePull[];
  /** Requests to open one that have arrived. */
  posts(branch: string): number;
  /** Resolves when the n-th of them has arrived, counted from 1. */
  arrived(branch: string, n?: number): Promise<void>;
  /** Resolves when nothing that has arrived is worked on any more: what is opened late counts too. */
  idle(branch: string): Promise<void>;
  close(): Promise<void>;
}

export async function startForge(): Promise<Forge> {
  const pulls: ForgePull[] = [];
  const posts = new Map<string, number>();
  const faults = new Map<string, ForgeFault>();
  const releases = new Map<string, Promise<void>>();
  const forgotten = new Set<string>();
  const working = new Map<string, Promise<void>[]>();
  const waiting: { readonly branch: string; readonly n: number; readonly go: () => void }[] = [];
  const count = (branch: string) => posts.get(branch) ?? 0;

  function open(branch: string, title: string): ForgePull {
    const pull = { number: pulls.length + 1, branch, title };
    pulls.push(pull);
    return pull;
  }

  async function post(head: string, title: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const first = count(head) === 0;
    posts.set(head, count(head) + 1);
    for (const { branch, n, go } of waiting) if (branch === head && count(head) >= n) go();
    const fault = first ? (faults.get(head) ?? { kind: 'none' as const }) : { kind: 'none' as const };
    if (first) await releases.get(head);
    switch (fault.kind) {
      case 'none':
        return answer(response, 201, shown(open(head, title)));
      case 'gateway':
        if (fault.commits) open(head, title);
        return answer(response, fault.status, { message: 'upstream' });
      case 'closes':
        if (fault.commits) open(head, title);
        return void request.socket.destroy();
      case 'late':
        await sleep(fault.afterMs);
        open(head, title);
        return void request.socket.destroy();
      case 'cut': {
        const text = JSON.stringify(shown(open(head, title)));
        response.writeHead(201, { 'content-length': text.length });
        return void response.write(text.slice(0, 20), () => request.socket.destroy());
      }
      case 'held':
        await fault.released;
        return answer(response, 201, shown(open(head, title)));
    }
  }

  function list(url: URL, response: ServerResponse): void {
    const branch = (url.searchParams.get('head') ?? '').replace(/^acme:/, '');
    if (forgotten.has(branch)) return answer(response, 501, { message: 'not implemented' });
    return answer(response, 200, pulls.filter((pull) => pull.branch === branch).map(shown));
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://forge');
    response.on('error', () => {});
    if (url.pathname !== '/repos/acme/app/pulls') return answer(response, 404, { message: 'not found' });
    if (request.method === 'POST') {
      return void bodyOf(request).then((body) => {
        const { head, title } = JSON.parse(body) as { head: string; title: string };
        working.set(head, [...(working.get(head) ?? []), post(head, title, request, response)]);
      });
    }
    return list(url, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    fault(branch, fault, released = Promise.resolve()) {
      faults.set(branch, fault);
      releases.set(branch, released);
    },
    forget: (branch) => void forgotten.add(branch),
    pulls: (branch) => pulls.filter((pull) => pull.branch === branch),
    posts: count,
    arrived: (branch, n = 1) =>
      new Promise((go) => {
        if (count(branch) >= n) go();
        else waiting.push({ branch, n, go });
      }),
    idle: (branch) => Promise.all(working.get(branch) ?? []).then(() => {}),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function shown({ number, branch }: ForgePull) {
  return {
    number,
    html_url: `http://forge/acme/app/pull/${number}`,
    state: 'open',
    head: { ref: branch, label: `acme:${branch}` },
    base: { ref: 'main' },
  };
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of request) text += String(part);
  return text;
}
