import { z } from 'zod';
import { answering, failure, Refused, success } from './answer.ts';
import { branchName, branchResource } from './branch-name.ts';
import { type CleanGit, inCleanGit } from './clean-git.ts';
import { show } from './capture.ts';
import { defineTool, type Reconciled, type Tool, type ToolContext, type ToolResult } from './define-tool.ts';
import { gitFolderOf } from './foreign-repository.ts';
import { commitAt, type GitRemote, hasToken } from './git-remote.ts';
import type { Finished } from './run-process.ts';
import { fitText } from './text.ts';

export interface PushToolOptions {
  /** Where branches go: http(s) URL by the name that the agent uses, such as `owner/name`. */
  readonly remotes: Readonly<Record<string, string>>;
  /** Name of the variable that holds the token; null for remotes that ask for none. It is read for each push. */
  readonly tokenEnv: string | null;
  /** User name that goes with the token; `x-access-token` if left out. */
  readonly username?: string;
  /** Branches that are never pushed; `main` and `master` if left out. */
  readonly protect?: readonly string[];
}

interface Args {
  readonly repo: string;
  readonly branch: string;
  readonly folder: string;
}

/** What the ledger keeps with the mark `started`. */
const Notes = z.object({ commit: z.string() });

const PROCESSES_MS = 620_000;
const SAID_CHARS = 2_000;

/**
 * Pushes a branch of a repository in the workspace, without force: the same commit on the same branch however
 * often it runs. Neither configuration nor hooks of the workspace are heeded, and its shell never sees the token.
 */
export function pushBranchTool(options: PushToolOptions): Tool {
  const { remotes, protect = ['main', 'master'] } = options;
  const names = Object.keys(remotes);
  const remoteOf = ({ repo }: Args) => remoteNamed(options, repo);
  for (const name of names) remoteNamed(options, name);
  const input = z.strictObject({
    repo: z.enum(names).describe('Repository that gets the branch.'),
    branch: branchName
      .refine((name) => !protect.includes(name), `${protect.join(' and ')} can't be pushed; use another branch`)
      .describe('Local branch to push; it has the same name there.'),
    folder: z.string().min(1).default('.').describe('Folder of the repository, relative to the workspace folder.'),
  });
  return defineTool<Args>({
    name: 'push_branch',
    description:
      'Pushes a local branch, as it is committed now, to the code forge. Never forced. Open pull requests after it.',
    input,
    effect: 'idempotent',
    timeLimitMs: PROCESSES_MS,
    secretEnv: options.tokenEnv === null ? [] : [options.tokenEnv],
    subject: ({ repo, branch }) => ({ kind: 'text', text: `${repo} ${branch}` }),
    locks: ({ repo, branch }) => [{ resource: branchResource(repo, branch), mode: 'write' }],
    // What is wrong is said by `run`, which meets it again.
    prepare: (args, context) =>
      inCleanGit(context, (git) => taken(git, args, context)).then(
        (commit) => ({ commit }),
        () => null,
      ),
    run: (args, context) => answering(args.branch, context, () => pushed(remoteOf(args), args, context)),
    reconcile: (args, context) => reconcile(remoteOf(args), args, context),
  }) as Tool;
}

function remoteNamed({ remotes, tokenEnv, username = 'x-access-token' }: PushToolOptions, name: string): GitRemote {
  const url = remotes[name] ?? '';
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username || parsed.password || parsed.search) {
    throw new Error(`The remote ${name} of push_branch must be an http(s) URL without user, password and query.`);
  }
  return { url: url.replace(/\/+$/, ''), tokenEnv, username };
}

async function pushed(remote: GitRemote, args: Args, context: ToolContext): Promise<ToolResult> {
  const { branch, repo } = args;
  if (!hasToken(remote)) {
    throw new Refused('The token of the forge is not set on this worker; only its operator can help.', 'no_token');
  }
  return await inCleanGit(context, async (git) => {
    const commit = await taken(git, args, context);
    const noted = Notes.safeParse(context.details).data;
    if (noted && noted.commit !== commit) throw new Refused(`${branch}: the branch moved just now.`, 'changed');
    const done = (how: string) => ({
      ...success(`${how} ${branch} at ${repo}: commit ${commit}.`, context.resultChars),
      note: commit.slice(0, 12),
    });
    if ((await commitAt(remote, branch, context)) === commit) return done('Pushed');
    if (context.mayAct?.() === false) throw new Refused('The call was stopped before it pushed.', 'aborted');
    const finished = await git.withRemote(remote, push(remote, commit, branch));
    if (finished.stopped === 'aborted') {
      return { ...failure('Stopped while it pushed.', 'aborted', context.resultChars), aborted: 'in_the_middle' };
    }
    // Whatever git made of the answer: the remote knows.
    if (finished.exit.code === 0 || (await commitAt(remote, branch, context)) === commit) return done('Pushed');
    if (isBehind(finished) && (await contains(git, remote, branch, commit))) return done('Already in');
    return refusal(finished, args, context);
  });
}

/** The branch, fetched into a repository of ours. Returns its commit. */
async function taken(git: CleanGit, { folder, branch }: Args, context: ToolContext): Promise<string> {
  const gitDir = await gitFolderOf(context.workspace, folder);
  const fetched = await git.take(gitDir, branch);
  context.signal.throwIfAborted();
  if (fetched.exit.code !== 0) {
    const text = said(fetched);
    if (/couldn't find remote ref/.test(text)) throw new Refused(`${branch}: there is no such branch.`, 'no_branch');
    throw new Refused(`The repository can't be read:\n${text}`, 'bad_repository');
  }
  const found = await git.run(['rev-parse', '--verify', '--quiet', `refs/heads/${branch}^{commit}`]);
  const commit = found.captured.kept.toString().trim();
  if (!/^[0-9a-f]{40,64}$/.test(commit)) throw new Refused(`${branch}: this is no branch of commits.`, 'no_branch');
  return commit;
}

function push({ url }: GitRemote, commit: string, branch: string): string[] {
  const quiet = ['--porcelain', '--no-verify', '--no-follow-tags', '--no-signed', '--no-recurse-submodules'];
  return ['push', ...quiet, url, `${commit}:refs/heads/${branch}`];
}

function isBehind(finished: Finished): boolean {
  return /^!\t.*\[rejected\] \((fetch first|non-fast-forward)\)/m.test(said(finished));
}

/** Somebody may have gone on from what an earlier attempt had pushed. */
async function contains(git: CleanGit, remote: GitRemote, branch: string, commit: string): Promise<boolean> {
  const theirs = 'refs/theirs';
  const args = [
    'fetch',
    '--no-tags',
    '--no-write-fetch-head',
    '--quiet',
    remote.url,
    `+refs/heads/${branch}:${theirs}`,
  ];
  if ((await git.withRemote(remote, args)).exit.code !== 0) return false;
  return (await git.run(['merge-base', '--is-ancestor', commit, theirs])).exit.code === 0;
}

function refusal(finished: Finished, { branch, repo }: Args, context: ToolContext): ToolResult {
  const text = isBehind(finished)
    ? `${branch} at ${repo} has commits that the local branch has not, and nothing is ever forced. Push under another name.`
    : `The push was refused or failed:\n${said(finished)}`;
  return failure(text, isBehind(finished) ? 'behind' : 'push_failed', context.resultChars);
}

function said({ captured }: Finished): string {
  return fitText(show(captured, SAID_CHARS).text.trim(), SAID_CHARS);
}

async function reconcile(remote: GitRemote, args: Args, context: ToolContext): Promise<Reconciled> {
  const noted = Notes.safeParse(context.details).data;
  // Another commit there says nothing: it may have come after ours.
  if (!noted || (await commitAt(remote, args.branch, context)) !== noted.commit) return { kind: 'unknown' };
  const text = `Pushed ${args.branch} at ${args.repo}: commit ${noted.commit}.`;
  return { kind: 'done', result: { ...success(text, context.resultChars), note: noted.commit.slice(0, 12) } };
}
