import { randomUUID } from 'node:crypto';
import type { Writable } from 'node:stream';
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { type Supervised, supervise } from '../process/supervise.ts';
import { storable } from '../store/hash.ts';
import { reap } from '../tools/reap.ts';
import { lastChars } from '../tools/text.ts';
import { toolEnvironment } from '../tools/tool-environment.ts';
import { MCP, type StdioServer } from './servers.ts';

const TAIL_CHARS = 500;
const DRAIN_MS = 500;

/**
 * A server as a process of ours. It runs under the supervisor, so it ends when we do, also when we are killed.
 * The library's own transport would leave it behind, and would give it our environment.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport['onmessage']>;
  readonly #server: StdioServer;
  /** In the environment of all its processes, so that none is left. */
  readonly #key = `mcp-${randomUUID()}`;
  readonly #buffer = new ReadBuffer({ maxBufferSize: MCP.messageBytes });
  #running: Supervised | null = null;
  #input: Writable | null = null;
  #closed = false;
  #errors = '';

  constructor(server: StdioServer) {
    this.#server = server;
  }

  /** The last of what it wrote to its standard error. */
  get errorTail(): string {
    return lastChars(storable(this.#errors), TAIL_CHARS).trim();
  }

  get pid(): number | null {
    return this.#running?.identity.pid ?? null;
  }

  async start(): Promise<void> {
    const { command, args = [], cwd = process.cwd(), env = {} } = this.#server;
    const own = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const running = await supervise({
      command,
      args,
      cwd,
      env: { ...(await toolEnvironment({ workspace: cwd, idempotencyKey: this.#key })), ...Object.fromEntries(own) },
      stopSignal: 'SIGTERM',
      graceMs: MCP.stopGraceMs,
      reapGroup: true,
      output: 'pipe',
      input: (stream) => {
        stream.on('error', () => {});
        stream.on('close', () => this.#closeSoon());
        this.#input = stream;
      },
    });
    this.#running = running;
    running.stdout?.on('data', (chunk: Buffer) => this.#read(chunk));
    running.stdout?.on('close', () => void this.close());
    running.stderr?.on('data', (chunk: Buffer) => {
      this.#errors = lastChars(this.#errors + chunk.toString('utf8'), TAIL_CHARS);
    });
    void running.exited.then(() => this.#closeSoon());
    if (this.#closed) running.stop();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const input = this.#input;
    if (this.#closed || input === null || input.destroyed) return Promise.reject(new Error('Not connected'));
    return new Promise((sent, failed) => {
      input.write(serializeMessage(message), (error) => (error ? failed(error) : sent()));
    });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#input?.end();
    this.#running?.stop();
    // First of all: whoever waits for an answer learns that none will come.
    this.onclose?.();
    await this.#running?.exited;
    await reap(this.#key);
  }

  /** It is gone, and its last answer may still be in the pipe. */
  #closeSoon(): void {
    if (!this.#closed) setTimeout(() => void this.close(), DRAIN_MS);
  }

  #read(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk);
    } catch (error) {
      this.onerror?.(error as Error);
      void this.close();
      return;
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage();
        if (message === null) return;
        this.onmessage?.(message);
      } catch (error) {
        // A line that is no message: many servers print something there.
        this.onerror?.(error as Error);
      }
    }
  }
}
