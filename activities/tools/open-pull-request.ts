import { z } from 'zod';
import { failure, success } from './answer.ts';
import { branchName, branchResource, isBranch } from './branch-name.ts';
import { defineTool, type Reconciled, type Tool, type ToolContext, type ToolResult } from './define-tool.ts';
import {
  findPullRequests,
  type ForgeOptions,
  hasToken,
  headLabel,
  jsonOf,
  postPullRequest,
  PullRequest,
} from './forge.ts';
import { OutcomeUnknown, unsentResult } from './http-answer.ts';
import { fitText } from './text.ts';

export interface PullRequestToolOptions extends ForgeOptions {
  /** False for a forge that can't list pull requests by branch: then a lost answer stays unknown. */
  readonly canLookUp?: boolean;
  /** How long the forge may still be working on a request whose connection is gone, ms. */
  readonly settleAfterMs?: number;
}

const input = z.strictObject({
  repo: z
    .string()
    .refine((name) => /^[\w-][\w.-]*\/[\w-][\w.-]*$/.test(name), 'write it as owner/name')
    .describe('Repository that gets the pull request, as owner/name.'),
  head: z
    .string()
    .max(250)
    .refine((head) => isBranch(head.replace(/^[\w.-]+:/, '')), 'write it as branch or owner:branch')
    .describe('Branch with the changes, which the forge must already have; owner:branch for one of a fork.'),
  base: branchName.default('main').describe('Branch that the changes are to go into.'),
  title: z.string().trim().min(1).max(250),
  body: z.string().max(60_000).default('').describe('Description, in Markdown.'),
});
type Args = z.output<typeof input>;

/** What the ledger keeps with the mark `started`: the pull requests that were there before. */
const Notes = z.object({ head: z.string(), before: z.array(z.number()).nullable() });

const DEFAULT_SETTLE_MS = 15_000;

/** Opens a pull request at a GitHub-compatible forge, once: a lost answer is settled by looking for its branch. */
export function openPullRequestTool(options: PullRequestToolOptions): Tool {
  const { canLookUp = true, settleAfterMs = DEFAULT_SETTLE_MS } = options;
  const find = (args: Args, context: ToolContext) =>
    canLookUp ? findPullRequests(options, args, context).catch(() => null) : Promise.resolve(null);
  return defineTool<Args>({
    name: 'open_pull_request',
    description: 'Opens a pull request from a branch that was pushed before, and returns its number and address.',
    input,
    effect: 'once',
    onUnknown: 'ask',
    settleAfterMs,
    secretEnv: options.tokenEnv === null ? [] : [options.tokenEnv],
    locks: (args) => [
      { resource: `pull-request:${args.repo}:${headLabel(args)}`, mode: 'write' },
      { resource: branchResource(args.repo, args.head.replace(/^[^:]*:/, '')), mode: 'read' },
    ],
    prepare: async (args, context) => {
      const found = await find(args, context);
      return { head: headLabel(args), before: found?.map(({ number }) => number) ?? null };
    },
    run: (args, context) => open(options, args, context, () => find(args, context)),
    reconcile: async (args, context) => judge(await find(args, context), context),
  }) as Tool;
}

async function open(
  forge: ForgeOptions,
  args: Args,
  context: ToolContext,
  find: () => Promise<readonly PullRequest[] | null>,
): Promise<ToolResult> {
  if (!hasToken(forge)) {
    return failure(
      'The token of the forge is not set on this worker; only its operator can help.',
      'no_token',
      context.resultChars,
    );
  }
  const fetched = await postPullRequest(forge, args, context);
  if (fetched.kind === 'unknown_after_send') throw new OutcomeUnknown(fetched.note);
  if (fetched.kind !== 'answered') return unsentResult(fetched, context);
  const { status, body } = fetched;
  if (status === 201) {
    const made = PullRequest.safeParse(jsonOf(body));
    // It is there, but its number did not come through: the look-up brings it.
    if (!made.success) throw new OutcomeUnknown('answer_cut');
    return opened(made.data, context);
  }
  // A server that failed, or gave up on us, may have done it before.
  if (status >= 500 || status === 408) throw new OutcomeUnknown(`HTTP ${status}`);
  const said = body.toString();
  if (status === 422 && /already exists/i.test(said)) return await existing(args, await find(), context);
  return failure(
    `The forge refused it: HTTP ${status}\n${fitText(said, 2_000)}`,
    `HTTP ${status}`,
    context.resultChars,
  );
}

/** The forge has at most one open pull request between two branches, and says so. */
async function existing(args: Args, found: readonly PullRequest[] | null, context: ToolContext): Promise<ToolResult> {
  const there = found?.find(({ state }) => state === 'open');
  if (there) return opened(there, context);
  const text = `There is already an open pull request from ${args.head} into ${args.base}; nothing was changed.`;
  return success(text, context.resultChars);
}

function judge(found: readonly PullRequest[] | null, context: ToolContext): Reconciled {
  if (found === null) return { kind: 'unknown' };
  const before = Notes.safeParse(context.details).data?.before ?? null;
  const open = found.find(({ state }) => state === 'open');
  const isNew = found.find(({ number }) => before !== null && !before.includes(number));
  const mine = isNew ?? open;
  if (mine) return { kind: 'done', result: opened(mine, context) };
  // Closed ones, and nobody noted whether they were there before.
  return { kind: before === null && found.length > 0 ? 'unknown' : 'absent' };
}

function opened({ number, html_url: url }: PullRequest, context: ToolContext): ToolResult {
  return { ...success(`Pull request #${number} is open: ${url}`, context.resultChars), note: `#${number}` };
}
