import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A remote store that de-duplicates by `Idempotency-Key`: a key that it has seen gets the first answer again. */
export interface KeyedStore {
  readonly url: string;
  /** What was handed in, once for each key. */
  entries(): readonly string[];
  close(): Promise<void>;
}

export async function startKeyedStore(): Promise<KeyedStore> {
  const entries = new Map<string, string>();
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => {
      const key = String(request.headers['idempotency-key'] ?? '');
      if (request.method !== 'POST' || key === '') return void response.writeHead(400).end();
      if (!entries.has(key)) entries.set(key, body);
      const n = [...entries.keys()].indexOf(key) + 1;
      response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ n }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/entries`,
    entries: () => [...entries.values()],
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
