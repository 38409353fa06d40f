import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { createRegistry } from '../../../activities/tools/registry.ts';
import { lowerTools } from '../../../activities/model/lower-schema.ts';
import { parseArguments } from '../../../activities/tools/parse-arguments.ts';
import { until } from '../../support/until.ts';
import { hubOf, toolOf, use } from './fixture.ts';

/** The official server with which clients are tried out. */
const LONG = 'trigger-long-running-operation';
const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'));

it('the official server over stdio: its tools, its results, its death in the middle of a call', async () => {
  const hub = hubOf({
    all: {
      command: process.execPath,
      args: [EVERYTHING, 'stdio'],
      effects: { 'get-sum': 'idempotent', [LONG]: 'once' },
    },
  });
  const tools = await hub.list();
  const tool = (name: string) => tools.find((each) => each.name === `mcp__all__${name}`)!;
  expect([tool('echo').effect, tool('get-sum').effect]).toEqual(['none', 'idempotent']);
  expect(await use(tool('echo'), { message: 'hello' })).toEqual({ isError: false, text: 'Echo: hello' });
  expect(await use(tool('get-sum'), { a: 2, b: 3 })).toMatchObject({ text: 'The sum of 2 and 3 is 5.' });
  expect(parseArguments(tool('get-sum'), '{"a":"2"}')).toMatchObject({
    ok: false,
    text: expect.stringContaining('- a: must be number'),
  });
  // Described, never pasted.
  const image = await use(tool('get-tiny-image'));
  expect(image.text).toMatch(/\[image, image\/png, \d+ bytes; not shown\]/);
  expect(image.text.length).toBeLessThan(500);
  const link = await use(tool('get-resource-links'), { count: 1 });
  expect(link.text).toMatch(/\[resource link, .*demo:\/\/.*; not shown\]/);
  const resource = await use(tool('get-resource-reference'), { resourceType: 'Text', resourceId: 1 });
  expect(resource.text).toMatch(/\[resource, demo:\/\/\S*, text\/plain, \d+ characters; not shown\]/);
  // Whoever wants its text can page through it.
  expect(resource.output?.toString()).toContain('Resource 1: This is a plaintext resource');
  expect(JSON.parse((await use(tool('get-structured-content'), { location: 'Chicago' })).text)).toMatchObject({
    conditions: expect.any(String),
  });

  // All of it can be stored, and shown to each kind of provider.
  const stored = createRegistry(tools).describe(tools.map(({ name }) => name));
  for (const rules of ['plain', 'openai', 'openai_strict'] as const)
    expect(lowerTools(stored, rules).leftOut).toEqual([]);

  const pending = use(tool(LONG), { duration: 600, steps: 600 });
  pending.catch(() => {});
  // The server takes one message after the other, so the call is under way when this one is answered.
  await use(tool('echo'), { message: 'now' });
  const at = Date.now();
  process.kill(hub.status().all!.pid!, 'SIGKILL');
  await expect(pending).rejects.toMatchObject({ name: 'McpCallLost', code: 'closed' });
  expect(Date.now() - at).toBeLessThan(2_000);
  expect(await use(tool('echo'), { message: 'again' })).toMatchObject({ text: 'Echo: again' });
});

it('the official server over HTTP, restarted between two calls', async () => {
  const port = await freePort();
  const server = { url: `http://127.0.0.1:${port}/mcp`, effects: { [LONG]: 'once' } } as const;
  let running = await startHttp(port);
  const hub = hubOf({ web: server });
  const [echo, sum] = [await toolOf(hub, 'mcp__web__echo'), await toolOf(hub, 'mcp__web__get-sum')];
  expect(await use(echo, { message: '1' })).toMatchObject({ text: 'Echo: 1' });
  await stopHttp(running);
  running = await startHttp(port);
  // Two at once, with a session that the new process does not know.
  const results = await Promise.all([use(echo, { message: '2' }), use(sum, { a: 1, b: 1 })]);
  expect(results.map(({ text }) => text)).toEqual(['Echo: 2', 'The sum of 1 and 1 is 2.']);
  expect(hub.status().web).toMatchObject({ state: 'up', starts: 2 });

  // Killed in the middle of a call: its stream could be resumed, but nobody is there.
  const long = await toolOf(hub, `mcp__web__${LONG}`);
  const pending = use(long, { duration: 600, steps: 600 });
  pending.catch(() => {});
  await use(echo, { message: '3' });
  const at = Date.now();
  await stopHttp(running);
  await expect(pending).rejects.toMatchObject({ name: 'McpCallLost' });
  expect(Date.now() - at).toBeLessThan(2_000);
});

interface HttpServer {
  readonly child: ChildProcess;
}

async function startHttp(port: number): Promise<HttpServer> {
  const child = spawn(process.execPath, [EVERYTHING, 'streamableHttp'], { env: { PORT: String(port) } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  onTestFinished(() => void child.kill('SIGKILL'));
  await until('the server listens', () => output.includes('listening on port'));
  return { child };
}

async function stopHttp({ child }: HttpServer): Promise<void> {
  const gone = new Promise((done) => child.once('exit', done));
  child.kill('SIGKILL');
  await gone;
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address() as { port: number };
  await new Promise((done) => probe.close(done));
  return port;
}
