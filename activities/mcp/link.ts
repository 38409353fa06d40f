import { setTimeout as sleep } from 'node:timers/promises';
import type { Tool as RemoteTool } from '@modelcontextprotocol/sdk/types.js';
import { storable } from '../store/hash.ts';
import { firstChars } from '../tools/text.ts';
import { Connection } from './connection.ts';
import { MCP, type McpServer } from './servers.ts';

const WHY_CHARS = 1_000;

export interface LinkStatus {
  /** `given_up`: nobody tries again until the next turn lists the tools. */
  readonly state: 'idle' | 'connecting' | 'up' | 'down' | 'given_up';
  readonly tools: number;
  /** Starts and connects so far. */
  readonly starts: number;
  readonly pid: number | null;
  /** What the last failure said, in the server's words. */
  readonly why: string | null;
}

/**
 * The way to one server, whatever becomes of its connections.
 *
 *   idle ──connect──▶ connecting ──▶ up ──closed──▶ down ──connect──▶ connecting
 *                         └─ the last try failed ──▶ given_up ──list──▶ connecting
 *
 * However many callers want it, one attempt is under way. A connection that closes before it was of any use counts
 * as a failed try, so a server that crashes again and again is given up too.
 */
export class Link {
  readonly name: string;
  readonly server: McpServer;
  readonly #onChange: () => void;
  #current: Connection | null = null;
  #connecting: Promise<Connection> | null = null;
  #tools: readonly RemoteTool[] | null = null;
  #shown = 0;
  #failures = 0;
  #starts = 0;
  #why: string | null = null;
  #wake = new AbortController();
  #closed = false;

  constructor(name: string, server: McpServer, onChange: () => void) {
    this.name = name;
    this.server = server;
    this.#onChange = onChange;
  }

  get status(): LinkStatus {
    const state = this.#current ? 'up' : this.#connecting ? 'connecting' : this.#givenUp ? 'given_up' : this.#starts > 0 ? 'down' : 'idle';
    const tools = this.#current ? this.#shown : 0;
    return { state, tools, starts: this.#starts, pid: this.#current?.pid ?? null, why: this.#current ? null : this.#why };
  }

  /** The open connection, or the next one; rejects when the server is given up. */
  connect(): Promise<Connection> {
    if (this.#current && !this.#current.closed) return Promise.resolve(this.#current);
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = null;
      this.#onChange();
    });
    return this.#connecting;
  }

  /** The server has answered a call: it is worth being started again. */
  worked(): void {
    this.#failures = 0;
  }

  /** This connection is of no use any more; a newer one stays. */
  drop(connection: Connection): void {
    if (this.#current !== connection) return;
    this.#current = null;
    this.#tools = null;
    connection.retire();
  }

  /** The tools as the server lists them now. Tries a server that was given up again. */
  async tools(): Promise<readonly RemoteTool[]> {
    const waitMs = this.#starts === 0 ? MCP.connectMs : MCP.listWaitMs;
    if (this.#givenUp) this.#failures = 0;
    this.#wake.abort();
    const listed = this.#listed();
    listed.catch(() => {});
    const late = sleep(waitMs, undefined, { ref: false }).then(() => {
      throw new Error(`not reached within ${waitMs} ms`);
    });
    return await Promise.race([listed, late]);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake.abort();
    const connection = this.#current ?? (await this.#connecting?.catch(() => null));
    this.#current = null;
    await connection?.close();
  }

  get #givenUp(): boolean {
    return this.#failures > MCP.retryDelaysMs.length;
  }

  async #listed(again = true): Promise<readonly RemoteTool[]> {
    const connection = await this.connect();
    if (this.#tools) return this.#tools;
    try {
      const tools = await connection.listTools();
      if (connection === this.#current) this.#tools = tools;
      this.#shown = tools.length;
      return tools;
    } catch (error) {
      this.#failed(error);
      this.drop(connection);
      if (!again) throw error;
      return await this.#listed(false);
    }
  }

  async #open(): Promise<Connection> {
    let last: unknown = new Error(this.#why ?? 'given up');
    while (!this.#givenUp && !this.#closed) {
      if (this.#failures > 0) await this.#pause(MCP.retryDelaysMs[this.#failures - 1] ?? 0);
      if (this.#closed) break;
      try {
        return await this.#openOnce();
      } catch (error) {
        this.#failed(error);
        last = error;
      }
    }
    throw last;
  }

  async #openOnce(): Promise<Connection> {
    this.#starts++;
    let opened: Connection | null = null;
    const connection = await Connection.open(this.server, {
      onClosed: () => this.#lost(opened),
      onListChanged: () => {
        this.#tools = null;
        this.#onChange();
      },
    });
    if (connection.closed) throw new Error('It ended right after it had started.');
    opened = connection;
    this.#current = connection;
    this.#tools = null;
    return connection;
  }

  #lost(connection: Connection | null): void {
    if (connection === null || this.#current !== connection) return;
    this.#current = null;
    this.#tools = null;
    this.#failed(new Error('The connection was lost.'));
    this.#onChange();
  }

  #failed(error: unknown): void {
    this.#failures++;
    this.#why = firstChars(storable(error instanceof Error ? error.message : 'unknown fault'), WHY_CHARS);
  }

  /** Cut short when a turn begins. */
  async #pause(ms: number): Promise<void> {
    this.#wake = new AbortController();
    await sleep(ms, undefined, { signal: this.#wake.signal, ref: false }).catch(() => {});
  }
}
