import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ResultSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';
import { type Fate, fateOf } from './fate.ts';
import { gaveUp, httpTransport } from './http-transport.ts';
import { type RemoteTool, readListing } from './listing.ts';
import { MCP, type McpServer } from './servers.ts';
import { StdioTransport } from './stdio-transport.ts';

export interface CallRequest {
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly idempotencyKey: string | null;
  readonly signal: AbortSignal;
  readonly timeLimitMs: number;
}

export interface ConnectionEvents {
  onClosed(): void;
  onListChanged(): void;
}

/** One initialised session with one server. It is never opened again: whoever needs another makes a new one. */
export class Connection {
  readonly #client: Client;
  readonly #transport: StdioTransport | StreamableHTTPClientTransport;
  #closed = false;
  #retired = false;
  #inFlight = 0;

  private constructor(client: Client, transport: StdioTransport | StreamableHTTPClientTransport) {
    this.#client = client;
    this.#transport = transport;
  }

  /** Starts or reaches the server and shakes hands. Rejects with a sentence for the operator. */
  static async open(server: McpServer, events: ConnectionEvents, signal: AbortSignal): Promise<Connection> {
    const client = new Client({ name: 'pawl', version: '0.1.0' }, { capabilities: {} });
    const transport = 'command' in server ? new StdioTransport(server) : httpTransport(server);
    const connection = new Connection(client, transport);
    client.onclose = () => {
      connection.#closed = true;
      events.onClosed();
    };
    client.onerror = (error) => {
      // Nobody is there to be told that we leave.
      if (gaveUp(error)) void transport.close();
    };
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => events.onListChanged());
    const stop = () => void transport.close();
    signal.addEventListener('abort', stop);
    try {
      // The library's transport lets `sessionId` be undefined where its interface says absent.
      await client.connect(transport as Transport, { timeout: MCP.connectMs });
      return connection;
    } catch (error) {
      await transport.close().catch(() => {});
      const tail =
        transport instanceof StdioTransport && transport.errorTail ? ` It wrote: ${transport.errorTail}` : '';
      throw new Error(`${(error as Error).message}${tail}`, { cause: error });
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Process id of a server of ours. */
  get pid(): number | null {
    return this.#transport instanceof StdioTransport ? this.#transport.pid : null;
  }

  /** The raw answer of `tools/call`; it is not checked here, since a call that has happened has happened. */
  async call({ name, args, idempotencyKey, signal, timeLimitMs }: CallRequest): Promise<Record<string, unknown>> {
    const params = {
      name,
      arguments: args,
      ...(idempotencyKey === null ? {} : { _meta: { 'pawl/idempotencyKey': idempotencyKey } }),
    };
    this.#inFlight++;
    try {
      return await this.#client.request({ method: 'tools/call', params }, ResultSchema, {
        signal,
        timeout: timeLimitMs + MCP.callMarginMs,
      });
    } finally {
      this.#inFlight--;
      if (this.#retired && this.#inFlight === 0) void this.close();
    }
  }

  /** Whether a call sent now would reach a live session; a server that is only slow is taken for alive. */
  async probe(): Promise<Fate | null> {
    if (this.#closed) return { kind: 'not_sent', note: 'closed' };
    if (this.#transport instanceof StdioTransport) return null;
    try {
      await this.#client.request({ method: 'ping' }, ResultSchema, { timeout: MCP.pingMs });
      return null;
    } catch (error) {
      const fate = fateOf(error);
      return fate.kind === 'answered' || fate.note === 'timeout' ? null : fate;
    }
  }

  async listTools(): Promise<{ readonly tools: readonly RemoteTool[]; readonly leftOut: number }> {
    if (!this.#client.getServerCapabilities()?.tools) return { tools: [], leftOut: 0 };
    const tools: RemoteTool[] = [];
    let leftOut = 0;
    let cursor: string | undefined;
    for (let page = 0; page < MCP.pages && tools.length < MCP.tools; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const timeout = MCP.listPageMs;
      const answer = await this.#client.request({ method: 'tools/list', params }, ResultSchema, { timeout });
      const read = readListing(answer);
      tools.push(...read.tools);
      leftOut += read.leftOut;
      const next = typeof answer.nextCursor === 'string' && answer.nextCursor !== '' ? answer.nextCursor : undefined;
      if (next === undefined || next === cursor) break;
      cursor = next;
    }
    return { tools: tools.slice(0, MCP.tools), leftOut: leftOut + Math.max(0, tools.length - MCP.tools) };
  }

  /** Takes no more calls, and closes when the last one is back: they may belong to a session that still lives. */
  retire(): void {
    this.#retired = true;
    if (this.#inFlight === 0) void this.close();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if ('terminateSession' in this.#transport) {
      const left = this.#transport.terminateSession().catch(() => {});
      await Promise.race([left, new Promise((done) => setTimeout(done, MCP.pingMs).unref())]);
    }
    await this.#transport.close().catch(() => {});
  }
}
