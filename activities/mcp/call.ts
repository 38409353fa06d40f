import { failure } from '../tools/answer.ts';
import type { ToolContext, ToolResult } from '../tools/define-tool.ts';
import { fitText } from '../tools/text.ts';
import type { Connection } from './connection.ts';
import { toResult } from './content.ts';
import { type Fate, fateOf, McpCallLost } from './fate.ts';
import type { Link } from './link.ts';

const MESSAGE_CHARS = 2_000;
const UNSENT_TRIES = 2;
const RESENDS_OF_READERS = 1;

export interface RemoteCall {
  readonly link: Link;
  /** The server's own name of the tool. */
  readonly tool: string;
  readonly args: Record<string, unknown>;
  /** A reader may be sent again; anything else is sent at most once. */
  readonly reads: boolean;
  /** The server de-duplicates by our key. */
  readonly keyed: boolean;
  readonly timeLimitMs: number;
}

/**
 * Makes one call. What is certain is a result, also "the server is down". A call that was sent and whose answer did
 * not come throws, unless the tool only reads: then it is sent once more, over a new connection if need be.
 */
export async function callRemote(call: RemoteCall, context: ToolContext): Promise<ToolResult> {
  const { link, reads } = call;
  for (let unsent = 0, resent = 0; ; ) {
    const ready = await whenReady(call, context);
    if ('isError' in ready) return ready;
    const sent = await send(call, ready, context);
    if ('isError' in sent) return sent;
    if (sent.kind !== 'lost') link.drop(ready);
    if (context.signal.aborted && (reads || sent.kind === 'not_sent')) return stopped(context);
    if (sent.kind === 'not_sent') {
      if (unsent++ < UNSENT_TRIES) continue;
      return down(call, context);
    }
    if (!reads) throw new McpCallLost(sent.note);
    if (resent++ < RESENDS_OF_READERS) continue;
    return failure(
      `The MCP server "${link.name}" did not answer (${sent.note}).`,
      `mcp_${sent.note}`,
      context.resultChars,
    );
  }
}

/** A connection that a call may be sent over, or the answer if there is none. */
async function whenReady(call: RemoteCall, context: ToolContext): Promise<Connection | ToolResult> {
  const { link, reads } = call;
  for (let tries = 0; tries < 2; tries++) {
    if (context.signal.aborted) return stopped(context);
    const connection = await orAborted(link.connect(), context.signal);
    if (connection === null) return context.signal.aborted ? stopped(context) : down(call, context);
    // A session that has expired would show only in the answer, and then nobody knows whether the server acted.
    const fault = reads ? null : await orAborted(connection.probe(), context.signal);
    if (fault === null) return context.signal.aborted ? stopped(context) : connection;
    link.drop(connection);
  }
  return down(call, context);
}

async function send(call: RemoteCall, connection: Connection, context: ToolContext): Promise<ToolResult | Unanswered> {
  const { signal, resultChars, idempotencyKey } = context;
  try {
    const answer = await connection.call({
      name: call.tool,
      args: call.args,
      idempotencyKey: call.keyed ? idempotencyKey : null,
      signal,
      timeLimitMs: call.timeLimitMs,
    });
    call.link.worked();
    return toResult(answer, resultChars);
  } catch (error) {
    const fate = fateOf(error);
    switch (fate.kind) {
      case 'answered':
        call.link.worked();
        return failure(
          `The MCP server answered with an error: ${fitText(fate.message, MESSAGE_CHARS)}`,
          `mcp_${fate.note}`,
          resultChars,
        );
      case 'refused':
        return failure(`The MCP server refused the request (${fate.note}).`, `mcp_${fate.note}`, resultChars);
      case 'not_sent':
      case 'session_gone':
      case 'lost':
        return fate;
    }
  }
}

type Unanswered = Extract<Fate, { kind: 'not_sent' | 'session_gone' | 'lost' }>;

/** Null if it failed, or if the signal came first. */
async function orAborted<T>(wanted: Promise<T>, signal: AbortSignal): Promise<T | null> {
  let onAbort = () => {};
  const aborted = new Promise<null>((done) => {
    onAbort = () => done(null);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([wanted.catch(() => null), aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function down({ link, tool }: RemoteCall, { resultChars }: ToolContext): ToolResult {
  const text = `The MCP server "${link.name}" is down, so ${tool} did not run. Go on without it, or try again later.`;
  return failure(text, 'mcp_down', resultChars);
}

function stopped({ resultChars }: ToolContext): ToolResult {
  return {
    ...failure('The call was stopped before it changed anything.', 'aborted', resultChars),
    aborted: 'without_effect',
  };
}
