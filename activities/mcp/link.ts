import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.ts';
import { fateOf } from './fate.ts';
import type { RemoteTool } from './listing.ts';
import { MCP, type McpServer } from './servers.ts';
import { Tries } from './tries.ts';

export interface LinkStatus {
  /** `given_up`: nobody tries again until the next turn lists the tools. */
  readonly state: 'idle' | 'connecting' | 'up' | 'down' | 'given_up';
  readonly tools: number;
  /** Tools of the server that can't be called. */
  readonly leftOut: number;
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
  #counts = { tools: 0, leftOut: 0 };
  #changes = 0;
  #starts = 0;
  readonly #tries = new Tries();
  readonly #closing = new AbortController();

  constructor(name: string, server: McpServer, onChange: () => void) {
    this.name = name;
    this.server = server;
    this.#onChange = onChange;
  }

  get status(): LinkStatus {
    const counts = this.#current ? this.#counts : { tools: 0, leftOut: 0 };
    const why = this.#current ? null : this.#tries.why;
    return { state: this.#state(), ...counts, starts: this.#starts, pid: this.#current?.pid ?? null, why };
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
    this.#tries.worked();
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
    this.#tries.renew();
    const listed = this.#listed();
    listed.catch(() => {});
    const late = sleep(waitMs, undefined, { ref: false }).then(() => {
      throw new Error(`not reached within ${waitMs} ms`);
    });
    return await Promise.race([listed, late]);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#tries.wake();
    const connection = this.#current ?? (await this.#connecting?.catch(() => null));
    this.#current = null;
    await connection?.close();
  }

  #state(): LinkStatus['state'] {
    if (this.#current) return 'up';
    if (this.#connecting) return 'connecting';
    if (this.#tries.givenUp) return 'given_up';
    return this.#starts > 0 ? 'down' : 'idle';
  }

  async #listed(again = true): Promise<readonly RemoteTool[]> {
    const connection = await this.connect();
    // A process of ours says when its list changes or when it dies; of a remote one we may not hear.
    if (this.#tools && connection.pid !== null) return this.#tools;
    try {
      const change = this.#changes;
      const { tools, leftOut } = await connection.listTools();
      // It may have changed again while it was read.
      if (connection === this.#current && change === this.#changes) this.#tools = tools;
      this.#counts = { tools: tools.length, leftOut };
      return tools;
    } catch (error) {
      if (this.#tools && fateOf(error).note === 'timeout') return this.#tools;
      this.#tries.failed(error);
      this.drop(connection);
      if (!again) throw error;
      return await this.#listed(false);
    }
  }

  async #open(): Promise<Connection> {
    let last: unknown = new Error(this.#tries.why ?? 'closed');
    while (!this.#tries.givenUp) {
      await this.#tries.pause();
      if (this.#closing.signal.aborted) break;
      try {
        return await this.#openOnce();
      } catch (error) {
        this.#tries.failed(error);
        last = error;
      }
    }
    throw last;
  }

  async #openOnce(): Promise<Connection> {
    this.#starts++;
    let opened: Connection | null = null;
    const events = {
      onClosed: () => this.#lost(opened),
      onListChanged: () => {
        this.#changes++;
        this.#tools = null;
        this.#onChange();
      },
    };
    const connection = await Connection.open(this.server, events, this.#closing.signal);
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
    this.#tries.failed(new Error('The connection was lost.'));
    this.#onChange();
  }
}
