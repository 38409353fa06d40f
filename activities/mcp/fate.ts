import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';

/** What an error tells about a request: whether it left, and whether the server has decided on it. */
export type Fate =
  /** It never reached the server. */
  | { readonly kind: 'not_sent'; readonly note: string }
  /** The server does not know our session; whether it acted before it said so is not known. */
  | { readonly kind: 'session_gone'; readonly note: string }
  /** Turned away at the door. */
  | { readonly kind: 'refused'; readonly note: string }
  /** The server answered, and the answer is an error. */
  | { readonly kind: 'answered'; readonly note: string; readonly message: string }
  /** It was sent, and nobody knows what became of it. */
  | { readonly kind: 'lost'; readonly note: string };

/** Made by our HTTP transport when the stream of a request ends before its answer. */
export const DROPPED = -32_099;

/** Codes that this library and gateways use for a call whose answer did not come. */
const LOST_CODES: Readonly<Record<number, string>> = {
  [ErrorCode.ConnectionClosed]: 'closed',
  [ErrorCode.RequestTimeout]: 'timeout',
  [DROPPED]: 'dropped',
};
const NEVER_SENT = new Set([
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['UND_ERR_CONNECT_TIMEOUT', 'ERR_STREAM_DESTROYED'],
]);
/** Answered before any tool was looked at. 404 and 400 are not here: they may come after the effect. */
const TURNED_AWAY = new Set([401, 403, 405, 406, 413, 415, 429]);

export function fateOf(error: unknown): Fate {
  if (error instanceof McpError) {
    const lost = LOST_CODES[error.code];
    if (lost !== undefined) return { kind: 'lost', note: lost };
    return { kind: 'answered', note: `rpc_${error.code}`, message: error.message.replace(/^(MCP error -?\d+: )+/, '') };
  }
  if (error instanceof StreamableHTTPError) return fateOfStatus(error.code ?? 0, error.message);
  if (error instanceof Error && error.message === 'Not connected') return { kind: 'not_sent', note: 'not_connected' };
  const code = codeOf(error);
  return NEVER_SENT.has(code) ? { kind: 'not_sent', note: code } : { kind: 'lost', note: code };
}

function fateOfStatus(status: number, message: string): Fate {
  const note = `http_${status}`;
  // Servers that keep sessions in memory answer 400 after a restart, the official one among them.
  if (status === 404 || (status === 400 && /session/i.test(message))) return { kind: 'session_gone', note };
  return TURNED_AWAY.has(status) ? { kind: 'refused', note } : { kind: 'lost', note };
}

/** Error code of a failed fetch or system call: its own, or its cause's. */
function codeOf(error: unknown): string {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if ('code' in inner && typeof inner.code === 'string') return inner.code;
  }
  return 'error';
}

/** Thrown for a call that was sent and whose outcome is not known: the ledger must not call it failed. */
export class McpCallLost extends Error {
  readonly code: string;

  constructor(note: string) {
    super('The MCP server was lost in the middle of a call.');
    this.name = 'McpCallLost';
    this.code = note;
  }
}
