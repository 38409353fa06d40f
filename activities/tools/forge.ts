import { z } from 'zod';
import { type Fetched, guardedFetch } from '../net/guarded-fetch.ts';
import type { ToolContext } from './define-tool.ts';

/** A code forge whose REST API is GitHub's, as far as pull requests go. */
export interface ForgeOptions {
  /** Base URL of the API, such as `https://api.github.com`. */
  readonly baseUrl: string;
  /** Name of the variable that holds the token; null for a forge that asks for none. It is read for each request. */
  readonly tokenEnv: string | null;
  /** Host names and networks that may be reached though they are not public; the API's own host is allowed anyway. */
  readonly allowHosts?: readonly string[];
  /** How long a request may take, ms. */
  readonly requestMs?: number;
}

export const PullRequest = z.object({
  number: z.number().int(),
  html_url: z.string(),
  state: z.string(),
  head: z.object({ ref: z.string(), label: z.string().optional() }),
  base: z.object({ ref: z.string() }),
});
export type PullRequest = z.output<typeof PullRequest>;

/** Where a pull request comes from and goes to. */
export interface Branches {
  /** `owner/name` of the repository that gets it. */
  readonly repo: string;
  /** Branch, or `owner:branch` of a fork. */
  readonly head: string;
  readonly base: string;
}

const REQUEST_MS = 30_000;
const NEWEST = 100;

/** `owner:branch`, as the forge labels it. */
export function headLabel({ repo, head }: Pick<Branches, 'repo' | 'head'>): string {
  return head.includes(':') ? head : `${repo.split('/')[0]}:${head}`;
}

/** Pull requests between two branches, open and closed; null where the forge can't or doesn't say. */
export async function findPullRequests(
  forge: ForgeOptions,
  branches: Branches,
  context: ToolContext,
): Promise<readonly PullRequest[] | null> {
  const label = headLabel(branches);
  const query = new URLSearchParams({ head: label, base: branches.base, state: 'all', per_page: String(NEWEST) });
  const fetched = await ask(forge, `/repos/${branches.repo}/pulls?${query.toString()}`, { method: 'GET' }, context);
  if (fetched.kind !== 'answered' || fetched.status !== 200) return null;
  const listed = z.array(PullRequest).safeParse(jsonOf(fetched.body));
  if (!listed.success || listed.data.length === NEWEST) return null;
  // A forge that does not know the filter answers with all there are.
  const owner = label.split(':')[0]?.toLowerCase();
  return listed.data.filter(
    ({ head, base }) =>
      base.ref === branches.base &&
      head.ref === label.slice(label.indexOf(':') + 1) &&
      (head.label === undefined || head.label.split(':')[0]?.toLowerCase() === owner),
  );
}

export async function postPullRequest(
  forge: ForgeOptions,
  { repo, head, base, title, body }: Branches & { readonly title: string; readonly body: string },
  context: ToolContext,
): Promise<Fetched> {
  const sent = { method: 'POST', body: JSON.stringify({ title, body, head, base }) };
  return await ask(forge, `/repos/${repo}/pulls`, sent, context);
}

export function jsonOf(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return null;
  }
}

async function ask(
  forge: ForgeOptions,
  path: string,
  { method, body }: { readonly method: string; readonly body?: string },
  context: ToolContext,
): Promise<Fetched> {
  const { baseUrl, allowHosts = [], requestMs = REQUEST_MS } = forge;
  return await guardedFetch(
    `${baseUrl.replace(/\/+$/, '')}${path}`,
    {
      method,
      headers: {
        accept: 'application/vnd.github+json',
        'x-github-api-version': '2022-11-28',
        'content-type': 'application/json',
        ...credentials(forge),
      },
      ...(body === undefined ? {} : { body }),
    },
    {
      allow: [new URL(baseUrl).host, new URL(baseUrl).hostname, ...allowHosts],
      signal: context.signal,
      timeoutMs: requestMs,
      maxBytes: 4 * 1024 * 1024,
      ...(method === 'POST' && context.mayAct ? { maySend: context.mayAct } : {}),
    },
  );
}

/** Whether this worker has what the forge asks for. */
export function hasToken({ tokenEnv }: ForgeOptions): boolean {
  return tokenEnv === null || Boolean(process.env[tokenEnv]);
}

function credentials({ tokenEnv }: ForgeOptions): Record<string, string> {
  if (tokenEnv === null) return {};
  return { authorization: `Bearer ${process.env[tokenEnv] ?? ''}` };
}
