import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Command, supervise } from '../../../activities/process/supervise.ts';
import type { ToolContext } from '../../../activities/tools/define-tool.ts';
import { openPullRequestTool } from '../../../activities/tools/open-pull-request.ts';
import { parseArguments } from '../../../activities/tools/parse-arguments.ts';
import { pushBranchTool } from '../../../activities/tools/push-branch.ts';
import { processesOf } from '../../../activities/tools/reap.ts';
import { type GitServer, startGitServer } from '../../support/git-server.ts';
import { call, contextFor, freshWorkspace } from './tool-context.ts';

const TOKEN = 'test-forge-token';
let workspace: string;
let outside: string;
let marker: string;
let server: GitServer;
let context: ToolContext;
let commands: Command[];

beforeEach(async () => {
  ({ workspace, outside } = freshWorkspace());
  vi.stubEnv('PUSH_TEST_TOKEN', TOKEN);
  marker = join(outside, 'marker');
  mkdirSync(workspace);
  server = await startGitServer(join(outside, 'forge'), TOKEN);
  onTestFinished(() => server.close());
  commands = [];
  context = contextFor(workspace, {
    spawn: (command) => {
      commands.push(command);
      return supervise(command);
    },
  });
  git('init', '--quiet', '--initial-branch=main', '.');
  commit('first');
  git('push', '--quiet', server.path, 'main');
  git('checkout', '--quiet', '-b', 'fix');
  commit('second');
});

// Whatever a case did: nothing runs on, nothing lies around, and no hook of the workspace has run.
afterEach(async () => {
  vi.unstubAllEnvs();
  expect(await processesOf(context.idempotencyKey)).toEqual([]);
  expect(readdirSync(tmpdir()).filter((name) => name.startsWith('pawl-push-'))).toEqual([]);
});

function git(...args: readonly string[]): string {
  const env = { PATH: process.env.PATH, HOME: outside, GIT_CONFIG_NOSYSTEM: '1' };
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@example.com'];
  return execFileSync('git', [...who, ...args], {
    cwd: workspace,
    encoding: 'utf8',
    env,
    stdio: 'pipe',
    timeout: 20_000,
  }).trim();
}

function commit(text: string): string {
  writeFileSync(join(workspace, 'file'), text);
  git('add', 'file');
  git('commit', '--quiet', '--no-verify', '-m', text);
  return git('rev-parse', 'HEAD');
}

const tool = () => pushBranchTool({ remotes: { 'acme/app': server.url }, tokenEnv: 'PUSH_TEST_TOKEN' });
const push = (args: object = {}) => call(tool(), { repo: 'acme/app', branch: 'fix', ...args }, context);
const head = () => git('rev-parse', 'fix');
const done = (sha: string) => ({
  isError: false,
  text: `Pushed fix at acme/app: commit ${sha}.`,
  note: sha.slice(0, 12),
});

describe('a push', () => {
  it('brings the branch as it is committed, and nothing else', async () => {
    git('tag', 'v1');
    expect(await push()).toEqual(done(head()));
    expect(server.git('for-each-ref', '--format=%(refname)').split('\n')).toEqual([
      'refs/heads/fix',
      'refs/heads/main',
    ]);
    expect(server.head('fix')).toBe(head());
    expect(server.git('show', 'fix:file')).toBe('second');
  });

  it('of the same commit again sends nothing; of a later one goes on', async () => {
    await push();
    const [before, sha] = [server.pushes(), head()];
    expect(await push()).toEqual(done(sha));
    expect(server.pushes()).toBe(before);
    commit('third');
    expect(await push()).toEqual(done(head()));
  });

  it.each(['answer_lost', 'gateway'] as const)('whose answer is lost (%s) is settled by asking', async (fault) => {
    server.fault(fault);
    expect(await push()).toEqual(done(head()));
    expect(server.head('fix')).toBe(head());
  });

  it('is never forced: a branch that went on elsewhere stays as it is', async () => {
    await push();
    git('commit', '--quiet', '--amend', '-m', 'another second');
    const there = server.head('fix');
    expect(await push()).toMatchObject({
      isError: true,
      note: 'behind',
      text: expect.stringContaining('nothing is ever forced'),
    });
    expect(server.head('fix')).toBe(there);
  });

  it('that somebody has gone on from counts as done', async () => {
    const sha = head();
    await push();
    commit('by somebody else');
    await push();
    git('reset', '--quiet', '--hard', sha);
    expect(await push()).toMatchObject({ isError: false, text: `Already in fix at acme/app: commit ${sha}.` });
  });

  it('a lost attempt of an ended turn is settled without a process', async () => {
    const args = { repo: 'acme/app', branch: 'fix', folder: '.' };
    const lost: ToolContext = { ...context, details: { commit: head() }, spawn: () => Promise.reject(new Error('no')) };
    expect(await tool().reconcile?.(args, lost)).toEqual({ kind: 'unknown' });
    await push();
    expect(await tool().reconcile?.(args, lost)).toEqual({ kind: 'done', result: done(head()) });
  });
});

describe('what can not be pushed is a result', () => {
  it.each([
    ['a branch that there is not', { branch: 'none' }, 'no_branch'],
    ['a folder without a repository', { folder: 'sub' }, 'no_repository'],
    ['a folder outside', { folder: '..' }, 'outside_workspace'],
  ])('%s', async (_, args, note) => {
    mkdirSync(join(workspace, 'sub'));
    expect(await push(args)).toMatchObject({ isError: true, note });
  });

  it('a wrong token, and one that is not set', async () => {
    vi.stubEnv('PUSH_TEST_TOKEN', 'test-wrong-token');
    expect(await push()).toMatchObject({ isError: true, note: 'push_failed' });
    vi.stubEnv('PUSH_TEST_TOKEN', '');
    expect(await push()).toMatchObject({ isError: true, note: 'no_token' });
    expect(server.head('fix')).toBeNull();
  });

  it('a branch that moves between the mark and the push', async () => {
    const parsed = parseArguments(tool(), JSON.stringify({ repo: 'acme/app', branch: 'fix' }));
    if (!parsed.ok) throw new Error(parsed.text);
    const details = await tool().prepare?.(parsed.args, context);
    expect(details).toEqual({ commit: head() });
    commit('third');
    expect(await tool().run(parsed.args, { ...context, details })).toMatchObject({ isError: true, note: 'changed' });
  });

  it.each([
    ['main', /can't be pushed/],
    ['--force', /no branch name/],
    ['a:b', /no branch name/],
    ['a..b', /no branch name/],
    ['+fix', null],
    ['refs/heads/*', /no branch name/],
    ['a\0b', /no branch name/],
    ['x.lock', /no branch name/],
  ])('the branch %j', async (branch, fault) => {
    const parsed = parseArguments(tool(), JSON.stringify({ repo: 'acme/app', branch }));
    expect(parsed.ok).toBe(fault === null);
    if (!parsed.ok) expect(parsed.text).toMatch(fault ?? /^$/);
    else expect(await push({ branch })).toMatchObject({ isError: true, note: 'no_branch' });
  });

  it.each(['file:///etc', 'ssh://git@forge/app', 'https://user:test-pw@forge/app', 'ext::sh -c id', ''])(
    'the remote %j is refused when the tool is made',
    (url) => {
      expect(() => pushBranchTool({ remotes: { a: url }, tokenEnv: null })).toThrow(/must be an http/);
    },
  );
});

/** Everything by which a repository can have somebody run its commands, or push elsewhere. */
function poison(): void {
  const evil = join(outside, 'evil.sh');
  writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> ${marker}\n`);
  chmodSync(evil, 0o755);
  const hooks = join(workspace, '.git', 'hooks');
  mkdirSync(hooks, { recursive: true });
  for (const name of ['pre-push', 'reference-transaction', 'post-checkout', 'post-update', 'pre-receive', 'update']) {
    writeFileSync(join(hooks, name), `#!/bin/sh\necho hook >> ${marker}\n`);
    chmodSync(join(hooks, name), 0o755);
  }
  writeFileSync(join(workspace, '.gitattributes'), '* filter=evil diff=evil\n');
  git('add', '.');
  git('commit', '--quiet', '--no-verify', '-m', 'attributes');
  const settings: Record<string, string> = {
    'core.fsmonitor': evil,
    'core.sshCommand': evil,
    'core.gitProxy': evil,
    'core.askPass': evil,
    'core.pager': evil,
    'core.editor': evil,
    'core.alternateRefsCommand': evil,
    'core.hooksPath': hooks,
    'credential.helper': `!${evil}`,
    'uploadpack.packObjectsHook': evil,
    'filter.evil.clean': evil,
    'filter.evil.smudge': evil,
    'filter.evil.process': evil,
    'diff.evil.command': evil,
    'diff.external': evil,
    'gpg.program': evil,
    'alias.upload-pack': `!${evil}`,
    'pager.upload-pack': evil,
    'remote.origin.url': `ext::${evil}`,
    'remote.origin.uploadpack': evil,
    'remote.origin.receivepack': evil,
    'remote.origin.promisor': 'true',
    'remote.origin.vcs': 'evil',
    'extensions.partialClone': 'origin',
    'protocol.ext.allow': 'always',
    [`url.${outside}/elsewhere.git.pushInsteadOf`]: server.url,
    [`url.${outside}/elsewhere.git.insteadOf`]: server.url,
    'http.proxy': 'http://127.0.0.1:1',
    'http.extraHeader': 'x-evil: 1',
    'push.gpgSign': 'true',
    'push.pushOption': 'evil',
  };
  git('config', 'core.repositoryFormatVersion', '1');
  for (const [name, value] of Object.entries(settings)) git('config', name, value);
}

describe('a repository that is not to be trusted', () => {
  it('runs nothing, and its branch goes where the configuration says', async () => {
    poison();
    const sha = git('-c', 'core.fsmonitor=false', 'rev-parse', 'fix');
    // It does bite whoever is not careful.
    spawnSync('git', ['status'], {
      cwd: workspace,
      env: { PATH: process.env.PATH, HOME: outside },
      stdio: 'ignore',
      timeout: 20_000,
    });
    expect(existsSync(marker)).toBe(true);
    renameSync(marker, `${marker}.control`);
    expect(await push()).toEqual(done(sha));
    expect(server.head('fix')).toBe(sha);
    expect(existsSync(marker) ? readFileSync(marker, 'utf8') : '').toBe('');
  });

  it('that lacks an object does not fetch it', async () => {
    poison();
    const blob = git('-c', 'core.fsmonitor=false', 'rev-parse', 'fix:file');
    renameSync(join(workspace, '.git/objects', blob.slice(0, 2), blob.slice(2)), join(outside, 'object'));
    if (existsSync(marker)) renameSync(marker, `${marker}.control`);
    expect(await push()).toMatchObject({ isError: true, note: 'bad_repository' });
    expect(existsSync(marker) ? readFileSync(marker, 'utf8') : '').toBe('');
    expect(server.head('fix')).toBeNull();
  });

  // With another user for the shell, it must not read through us what it could not read itself.
  it.each<[string, (private_: string) => void]>([
    [
      'its .git is a link',
      (other) => (
        renameSync(join(workspace, '.git'), join(outside, 'old')),
        symlinkSync(join(other, '.git'), join(workspace, '.git'))
      ),
    ],
    [
      'its .git is a file that names another',
      (other) => (
        renameSync(join(workspace, '.git'), join(outside, 'old')),
        writeFileSync(join(workspace, '.git'), `gitdir: ${other}/.git\n`)
      ),
    ],
    [
      'it has alternates',
      (other) => writeFileSync(join(workspace, '.git/objects/info/alternates'), `${other}/.git/objects\n`),
    ],
    ['it has a common folder', (other) => writeFileSync(join(workspace, '.git/commondir'), `${other}/.git\n`)],
    [
      'its packs are a link',
      (other) => (
        renameSync(join(workspace, '.git/objects/pack'), join(outside, 'packs')),
        symlinkSync(join(other, '.git/objects/pack'), join(workspace, '.git/objects/pack'))
      ),
    ],
    [
      'a ref is a link',
      (other) => symlinkSync(join(other, '.git/refs/heads/main'), join(workspace, '.git/refs/heads/theirs')),
    ],
  ])('is refused where %s', async (_, redirect) => {
    const other = join(outside, 'private');
    mkdirSync(other);
    execFileSync('git', ['clone', '--quiet', workspace, other], { env: { PATH: process.env.PATH, HOME: outside } });
    redirect(other);
    expect(await push()).toMatchObject({
      isError: true,
      note: expect.stringMatching(/^(no_repository|repository_elsewhere)$/),
    });
    expect(server.head('fix')).toBeNull();
  });
});

describe('the token', () => {
  it('is in no argument, and in the environment of those processes alone that talk to the forge', async () => {
    await push();
    const secrets = [TOKEN, Buffer.from(`x-access-token:${TOKEN}`).toString('base64')];
    const has = (value: unknown) => secrets.some((secret) => JSON.stringify(value).includes(secret));
    expect(commands.some(({ args }) => has(args))).toBe(false);
    const told = commands
      .filter(({ env }) => has(env))
      .map(({ args }) => args.find((arg) => /^(push|fetch)$/.test(arg)));
    expect(told).toEqual(['push']);
    expect(commands.every(({ cwd }) => !cwd.startsWith(workspace))).toBe(true);
  });
});

// Both in one message: the pull request waits for its branch.
it('a pull request conflicts with the push of its branch', () => {
  const request = openPullRequestTool({ baseUrl: 'https://forge', tokenEnv: null });
  const args = { repo: 'acme/app', head: 'fix', base: 'main', title: 't', body: '' };
  const pushes = tool().locks({ repo: 'acme/app', branch: 'fix', folder: '.' }, workspace);
  expect(pushes).toEqual([{ resource: 'branch:acme/app:fix', mode: 'write' }]);
  expect(request.locks(args, workspace)).toContainEqual({ resource: 'branch:acme/app:fix', mode: 'read' });
});
