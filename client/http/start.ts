import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { App } from './open-app.ts';

const USUAL_PORT = 4600;

export interface HttpOptions {
  readonly app: App;
  readonly host?: string;
  readonly port?: number;
  /** Then it is this port or none; else the next free one. */
  readonly portAskedByName: boolean;
}

export interface HttpServer {
  readonly url: string;
  readonly port: number;
  /** Takes no more requests, gives answers a moment to go out, then cuts what is left (streams above all). */
  close(): Promise<void>;
}

export type HttpStart =
  | { readonly kind: 'listening'; readonly server: HttpServer }
  | { readonly kind: 'port_busy'; readonly port: number }
  | { readonly kind: 'refused'; readonly why: string };

const TRIES = 20;
const CLOSE_GRACE_MS = 500;

export async function startHttp({ app, portAskedByName, ...wish }: HttpOptions): Promise<HttpStart> {
  const { host = '127.0.0.1', port = USUAL_PORT } = wish;
  const ports = portAskedByName ? [port] : [...Array.from({ length: TRIES }, (_, i) => port + i), 0];
  for (const candidate of ports) {
    const server = createAdaptorServer({ fetch: app.fetch }) as Server;
    const code = await listen(server, candidate, host);
    if (code === null) return { kind: 'listening', server: running(server, host) };
    if (code !== 'EADDRINUSE') return { kind: 'refused', why: `${host}:${candidate} (${code})` };
  }
  return { kind: 'port_busy', port };
}

function listen(server: Server, port: number, host: string): Promise<string | null> {
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(port, host, () => resolve(null));
  });
}

function running(server: Server, host: string): HttpServer {
  const { port } = server.address() as AddressInfo;
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host;
  return {
    url: `http://${name}:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        const cut = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
}
