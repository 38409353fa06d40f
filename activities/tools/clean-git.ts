import { mkdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ToolContext } from './define-tool.ts';
import { authorization, type GitRemote } from './git-remote.ts';
import { type Finished, runProcess } from './run-process.ts';
import { searchPath } from './tool-environment.ts';
import { sha256 } from './workspace-file.ts';

const GIT_MS = 300_000;

/** Nothing but what we say: no hook, no helper, no prompt, no protocol that was not meant. */
const SETTINGS = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.askPass': '',
  'credential.helper': '',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  'protocol.allow': 'never',
  'http.followRedirects': 'false',
};

/**
 * `upload-pack` is the one part of git that is meant for repositories of others: it runs no hook and no command
 * of theirs. What the command line says of the rest comes before their configuration.
 */
const UPLOAD_PACK =
  "git --no-pager -c core.hooksPath=/dev/null -c core.fsmonitor=false -c safe.directory='*' upload-pack";

/** A bare repository of ours, outside of the workspace, with nothing in it but what was fetched. */
export interface CleanGit {
  /** Brings a branch of a repository that is not trusted, by the path of its git folder. */
  take(gitDir: string, branch: string): Promise<Finished>;
  /** Runs git with the credentials of a remote, which only its environment has. */
  withRemote(remote: GitRemote, args: readonly string[]): Promise<Finished>;
  run(args: readonly string[]): Promise<Finished>;
}

/** Makes it for as long as `work` takes. What a killed attempt of the same call left is dropped first. */
export async function inCleanGit<T>(context: ToolContext, work: (git: CleanGit) => Promise<T>): Promise<T> {
  const folder = join(tmpdir(), `pawl-push-${sha256(context.idempotencyKey).slice(0, 32)}`);
  await rm(folder, { recursive: true, force: true });
  // Without `recursive` it fails where somebody else has put something meanwhile.
  await mkdir(folder, { mode: 0o700 });
  try {
    const run = (args: readonly string[], settings: Record<string, string> = {}, env: Record<string, string> = {}) =>
      git(context, folder, { args, settings, env });
    await run(['init', '--bare', '--quiet', '--template=', '.']);
    return await work({
      run: (args) => run(args),
      take: (gitDir, branch) =>
        run(
          [
            'fetch',
            ...['--no-tags', '--no-write-fetch-head', '--no-recurse-submodules', '--quiet'],
            `--upload-pack=${UPLOAD_PACK}`,
            gitDir,
            `+refs/heads/${branch}:refs/heads/${branch}`,
          ],
          { 'protocol.file.allow': 'always' },
        ),
      withRemote: (remote, args) =>
        run(args, { 'protocol.http.allow': 'always', 'protocol.https.allow': 'always' }, credentials(remote)),
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function git(
  context: ToolContext,
  folder: string,
  how: {
    readonly args: readonly string[];
    readonly settings: Readonly<Record<string, string>>;
    readonly env: Readonly<Record<string, string>>;
  },
): Promise<Finished> {
  const settings = Object.entries({ ...SETTINGS, ...how.settings }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const isInit = how.args[0] === 'init';
  return await runProcess(
    {
      command: 'git',
      args: ['--no-pager', ...settings, ...how.args],
      timeLimitMs: GIT_MS,
      gentle: true,
      at: { cwd: folder, env: { ...environment(folder), ...(isInit ? {} : { GIT_DIR: folder }), ...how.env } },
    },
    context,
  );
}

function environment(folder: string): Record<string, string> {
  return {
    PATH: searchPath(process.env.PATH),
    HOME: folder,
    XDG_CONFIG_HOME: folder,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    // No repository above the folder counts.
    GIT_CEILING_DIRECTORIES: tmpdir(),
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_LAZY_FETCH: '1',
    GIT_NO_REPLACE_OBJECTS: '1',
    ...Object.fromEntries(PASSED.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []))),
  };
}

/** How this machine reaches the network. */
const PASSED = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'SSL_CERT_FILE',
  'GIT_SSL_CAINFO',
];

/** In the environment, which only processes of the same user can read; arguments everybody can. */
function credentials(remote: GitRemote): Record<string, string> {
  const entries = Object.entries(authorization(remote));
  return Object.assign(
    { GIT_CONFIG_COUNT: String(entries.length) },
    ...entries.map(([name, value], n) => ({
      [`GIT_CONFIG_KEY_${n}`]: `http.${new URL(remote.url).origin}/.extraHeader`,
      [`GIT_CONFIG_VALUE_${n}`]: `${name}: ${value}`,
    })),
  ) as Record<string, string>;
}
