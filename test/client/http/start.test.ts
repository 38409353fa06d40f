import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApp } from '../../../client/http/app.ts';
import { startHttp } from '../../../client/http/start.ts';
import type { Runs } from '../../../client/index.ts';

const asked: string[] = [];
const app = createApp({
  check: () => Promise.resolve(),
  why: (_tenant, id) => {
    asked.push(id);
    return Promise.resolve(null);
  },
} as Runs);
let taken: Server;
let port: number;
beforeAll(async () => {
  taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const address = taken.address();
  port = typeof address === 'object' && address ? address.port : 0;
});
afterAll(() => taken.close());

test('a busy port that was asked for by name is refused', async () => {
  expect(await startHttp({ app, port, portAskedByName: true })).toEqual({ kind: 'port_busy', port });
});

test('otherwise the next free one is taken', async () => {
  const started = await startHttp({ app, port, portAskedByName: false });
  if (started.kind !== 'listening') throw new Error(started.kind);
  expect(started.server.port).not.toBe(port);
  expect((await fetch(`${started.server.url}/healthz`)).status).toBe(200);
  // Nothing between the wire and the route may take an encoded slash for one of the address.
  expect((await fetch(`${started.server.url}/v1/turns/ses_1%2Fagent%2F1/2/why`)).status).toBe(404);
  expect(asked).toEqual(['ses_1/agent/1/2']);
  await started.server.close();
});

test('an address that is not of this machine is refused with its reason', async () => {
  expect(await startHttp({ app, host: '192.0.2.1', portAskedByName: false })).toMatchObject({ kind: 'refused' });
});
