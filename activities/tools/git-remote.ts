import { type Fetched, guardedFetch } from '../net/guarded-fetch.ts';
import type { ToolContext } from './define-tool.ts';

/** A repository on a forge, reached over http. */
export interface GitRemote {
  /** Such as `https://github.com/acme/app.git`. */
  readonly url: string;
  /** Name of the variable that holds the token; null for a remote that asks for none. It is read for each use. */
  readonly tokenEnv: string | null;
  /** User name that goes with the token. */
  readonly username: string;
}

const ASK_MS = 30_000;

/**
 * Commit that a branch has at the remote; null where there is no such branch, or the remote does not say. It is
 * asked in git's protocol, version 2, without a git process.
 */
export async function commitAt(
  remote: GitRemote,
  branch: string,
  context: Pick<ToolContext, 'signal'>,
): Promise<string | null> {
  const ref = `refs/heads/${branch}`;
  const fetched = await guardedFetch(
    `${remote.url}/git-upload-pack`,
    {
      method: 'POST',
      headers: {
        'content-type': 'application/x-git-upload-pack-request',
        accept: 'application/x-git-upload-pack-result',
        'git-protocol': 'version=2',
        ...authorization(remote),
      },
      body: `${packet('command=ls-refs\n')}0001${packet(`ref-prefix ${ref}\n`)}0000`,
    },
    {
      allow: [new URL(remote.url).host, new URL(remote.url).hostname],
      signal: context.signal,
      timeoutMs: ASK_MS,
      redirects: 0,
    },
  );
  // A prefix names longer branches too.
  return linesOf(fetched).find(({ name }) => name === ref)?.commit ?? null;
}

/** Whether this worker has what the remote asks for. */
export function hasToken({ tokenEnv }: Pick<GitRemote, 'tokenEnv'>): boolean {
  return tokenEnv === null || Boolean(process.env[tokenEnv]);
}

export function authorization({ tokenEnv, username }: GitRemote): Record<string, string> {
  if (tokenEnv === null) return {};
  const pair = Buffer.from(`${username}:${process.env[tokenEnv] ?? ''}`).toString('base64');
  return { authorization: `Basic ${pair}` };
}

function packet(line: string): string {
  return (Buffer.byteLength(line) + 4).toString(16).padStart(4, '0') + line;
}

/** The lines of an answer up to its flush packet; none of anything else. */
function linesOf(fetched: Fetched): { readonly commit: string; readonly name: string }[] {
  if (fetched.kind !== 'answered' || fetched.status !== 200) return [];
  const { body } = fetched;
  const lines: { commit: string; name: string }[] = [];
  for (let at = 0; ; ) {
    const length = Number.parseInt(body.toString('latin1', at, at + 4), 16);
    if (length === 0) return lines;
    const found = length > 4 && /^([0-9a-f]{40,64}) (\S+)/.exec(body.toString('utf8', at + 4, at + length));
    if (!found) return [];
    lines.push({ commit: found[1] ?? '', name: found[2] ?? '' });
    at += length;
  }
}
