import type { Effect } from '../../workflows/core/tools.ts';

interface Common {
  /** Longest run of one call, ms; 120 s if left out. */
  readonly timeLimitMs?: number;
  /** Effects by the server's own tool names, where its annotations are missing or wrong. */
  readonly effects?: Readonly<Record<string, Effect>>;
}

/** A server that we start, and that ends with us. */
export interface StdioServer extends Common {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to a clean environment; nothing of the worker's is inherited. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/** A server behind a URL (streamable HTTP). */
export interface HttpServer extends Common {
  readonly url: string;
  /** Request headers, each with the name of the variable that holds its value. */
  readonly headersEnv?: Readonly<Record<string, string>>;
}

export type McpServer = StdioServer | HttpServer;
/** By name: letters and digits, joined by single `-` or `_`. */
export type McpServers = Readonly<Record<string, McpServer>>;

const SERVER_NAME = /^(?=.{1,32}$)[a-zA-Z0-9]+([_-][a-zA-Z0-9]+)*$/;

/** Throws on a name that would make tool names ambiguous. */
export function checkServerName(name: string): void {
  if (!SERVER_NAME.test(name)) {
    throw new Error(`MCP server name "${name}" must be letters and digits joined by single - or _, at most 32.`);
  }
}

/** What no second try can mend. */
export class Unusable extends Error {}

export const MCP = {
  /** One start or connect with its handshake; also how long the first list waits for a server. */
  connectMs: 30_000,
  /** Before the second and each later try; after the last, nobody tries until the next turn lists the tools. */
  retryDelaysMs: [200, 600, 2_000, 5_000],
  /** How long a turn waits for the tools of a server that has failed or been lost before. */
  listWaitMs: 3_000,
  listPageMs: 15_000,
  pingMs: 2_000,
  pages: 50,
  tools: 500,
  descriptionChars: 1_024,
  callMs: 120_000,
  /** The time limit of a call comes with its signal; the library's own is only behind it. */
  callMarginMs: 10_000,
  messageBytes: 32 * 1024 * 1024,
  outputBytes: 8 * 1024 * 1024,
  stopGraceMs: 2_000,
} as const;
