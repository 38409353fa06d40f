import { existsSync, readFileSync } from 'node:fs';
import { link, mkdir, symlink, writeFile as writeBytes } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { startedAt } from '../../../activities/process/identity.ts';
import type { Tool, ToolContext } from '../../../activities/tools/define-tool.ts';
import { editFile } from '../../../activities/tools/edit-file.ts';
import { listFiles } from '../../../activities/tools/list-files.ts';
import { readFile } from '../../../activities/tools/read-file.ts';
import { processesOf } from '../../../activities/tools/reap.ts';
import { searchText } from '../../../activities/tools/search-text.ts';
import { shell } from '../../../activities/tools/shell.ts';
import { writeFile } from '../../../activities/tools/write-file.ts';
import { call, contextFor, freshWorkspace, until } from './tool-context.ts';

/** The five tools that take a path, with whatever else they need. */
const ON_PATHS: readonly (readonly [Tool, object])[] = [
  [readFile as Tool, {}],
  [listFiles as Tool, {}],
  [searchText as Tool, { pattern: 'secret' }],
  [writeFile as Tool, { content: 'evil' }],
  [editFile as Tool, { old_string: 'secret', new_string: 'evil' }],
];

let outside: string;
let workspace: string;
let abort: AbortController;
let context: ToolContext;
beforeEach(async () => {
  ({ outside, workspace } = freshWorkspace());
  await mkdir(join(workspace, 'dir'), { recursive: true });
  await mkdir(join(outside, 'ws-twin'));
  for (const path of ['secret.txt', 'ws-twin/secret.txt', 'ws/dir/secret.txt'])
    await writeBytes(join(outside, path), 'secret');
  await symlink('../secret.txt', join(workspace, 'leaf'));
  await symlink('..', join(workspace, 'up'));
  await symlink('../new.txt', join(workspace, 'nowhere'));
  abort = new AbortController();
  context = contextFor(workspace, { signal: abort.signal });
});
// Whatever a case did: the outside is as it was, and nothing of the call runs on.
afterEach(async () => {
  for (const path of ['secret.txt', 'ws-twin/secret.txt'])
    expect(readFileSync(join(outside, path), 'utf8')).toBe('secret');
  expect(existsSync(join(outside, 'new.txt'))).toBe(false);
  expect(await processesOf(context.idempotencyKey)).toEqual([]);
});

const PATHS: readonly (readonly [string, string, string])[] = [
  ['a way up', '../secret.txt', 'outside_workspace'],
  ['a way up in the middle', 'dir/../../secret.txt', 'outside_workspace'],
  ['a folder whose name begins alike', '../ws-twin/secret.txt', 'outside_workspace'],
  ['an absolute path', '/etc/passwd', 'outside_workspace'],
  ['a link on the way', 'up/secret.txt', 'outside_workspace'],
  ['NUL', 'dir/secret.txt\0.png', 'bad_path'],
  ['half of a character', 'dir/secret.txt\ud83c', 'bad_path'],
];

describe.each(ON_PATHS.map(([tool, more]) => [tool.name, tool, more] as const))('%s', (name, tool, more) => {
  it.each(PATHS)('refuses %s: %j', async (_, path, note) => {
    const result = await call(tool, { path, ...more }, context);
    expect(result).toMatchObject({ isError: true, note });
    expect(result.text).not.toContain(outside);
    expect(result.text).not.toMatch(/root:x:0/);
  });

  const writes = name === 'write_file' || name === 'edit_file';
  it.each([
    ['a link at the leaf', 'leaf', writes ? 'link' : 'outside_workspace'],
    ['a link to nothing', 'nowhere', 'link'],
  ])('refuses %s', async (_, path, note) => {
    expect(await call(tool, { path, ...more }, context)).toMatchObject({ isError: true, note });
  });

  it('an absolute path of a folder whose name begins alike is outside', async () => {
    expect(await call(tool, { path: `${workspace}-twin/secret.txt`, ...more }, context)).toMatchObject({
      isError: true,
      note: 'outside_workspace',
    });
  });
});

describe('what is there, whatever it holds', () => {
  it.each([
    ['NUL', Buffer.from('secret\0'), 'binary'],
    ['bytes that are no UTF-8', Buffer.from([0x73, 0xff, 0xfe, 0x0a]), 'shown'],
    ['half of a surrogate pair', Buffer.from([0x73, 0xed, 0xa0, 0xbc, 0x0a]), 'shown'],
    ['a line of 9 MB', Buffer.alloc(9_000_000, 's'), 'shown'],
  ])('%s is read, searched and listed, and stays as it is', async (_, bytes, how) => {
    await writeBytes(join(workspace, 'f'), bytes);
    const read = await call(readFile, { path: 'f' }, context);
    expect(read.isError).toBe(false);
    if (how === 'binary') expect(read.text).toMatch(/binary file, not shown/);
    expect((await call(searchText, { pattern: 's' }, context)).isError).toBe(false);
    expect((await call(listFiles, {}, context)).text.split('\n')).toContain('f');
    expect((await call(editFile, { path: 'f', old_string: 'none of it', new_string: 'x' }, context)).isError).toBe(
      true,
    );
    expect(readFileSync(join(workspace, 'f')).equals(bytes)).toBe(true);
  });

  it('names of any bytes are listed and stored', async () => {
    await writeBytes(Buffer.concat([Buffer.from(join(workspace, 'name-')), Buffer.from([0xff, 0xed, 0xa0, 0xbc])]), '');
    expect((await call(listFiles, {}, context)).text).toMatch(/^"?name-/m);
  });

  // The file has another name outside; a write puts a new file in the place of this one.
  it('a write does not go through a hard link', async () => {
    await link(join(outside, 'secret.txt'), join(workspace, 'hard'));
    expect(await call(writeFile, { path: 'hard', content: 'evil' }, context)).toMatchObject({ isError: false });
    expect(readFileSync(join(workspace, 'hard'), 'utf8')).toBe('evil');
  });

  it('more matches than a result holds are cut', async () => {
    await writeBytes(join(workspace, 'f'), `${'match 🎫'.repeat(40)}\n`.repeat(5_000));
    const { text, isError } = await call(searchText, { pattern: 'match' }, context);
    expect(isError).toBe(false);
    expect(text).toMatch(/stopped there; narrow the search/);
  });
});

describe('a command', () => {
  const sh = (command: string, more: object = {}) => call(shell, { command, ...more }, context);

  // In a session of its own without a terminal: whoever asks a person gets an error, not a wait.
  it.each([
    ['the terminal', 'read -rsp "Password: " word < /dev/tty; echo "status $?"', /status 1/],
    ['standard input', 'read -rsp "Password: " word; echo "status $?"', /status 1/],
    [
      'ssh',
      'command -v ssh > /dev/null || exit 0; ssh -o ConnectTimeout=2 -o StrictHostKeyChecking=ask nobody@127.0.0.1 -p 1; echo "status $?"',
      /status 255|no output/,
    ],
  ])('that asks %s for a password does not wait', async (_, command, told) => {
    const begun = Date.now();
    const { text, note } = await sh(command, { timeout_seconds: 20 });
    expect(note).toBe('exit 0');
    expect(text).toMatch(told);
    expect(Date.now() - begun).toBeLessThan(15_000);
  });

  it('git that is asked for a password fails at once', async () => {
    const server = createServer(
      (_, response) => void response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end(),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const { text, note } = await sh(`git ls-remote http://127.0.0.1:${port}/x.git`, { timeout_seconds: 20 });
    expect(note).toBe('exit 128');
    expect(text).toMatch(/terminal prompts disabled|could not read Username/);
  });

  it('with half of a character in it is refused', async () => {
    expect(await sh('echo \ud83c > f')).toMatchObject({ isError: true, note: 'bad_command' });
    expect(existsSync(join(workspace, 'f'))).toBe(false);
  });

  // All of it at once: a session of its own, deaf to SIGTERM, holding the pipes, writing without end.
  it('that does everything to live on is gone when it is stopped', async () => {
    const evil = "trap '' TERM HUP INT PIPE; echo $BASHPID > child; yes still here & while :; do sleep 0.1; done";
    await writeBytes(join(workspace, 'evil.sh'), evil);
    const stopped = sh("setsid bash evil.sh & trap '' TERM; touch started; wait; while :; do sleep 0.1; done");
    await until('both run', () => existsSync(join(workspace, 'started')) && existsSync(join(workspace, 'child')));
    abort.abort();
    expect(await stopped).toMatchObject({ isError: true, note: expect.stringMatching(/^(aborted|output limit)$/) });
    expect(startedAt(Number(readFileSync(join(workspace, 'child'), 'utf8')))).toBeNull();
  }, 30_000);
});

it('a search that is stopped leaves nothing running', async () => {
  await writeBytes(join(workspace, 'f'), `${'a'.repeat(60)}b`);
  const stopped = call(searchText, { pattern: '^(a+)+$' }, context);
  await until('it runs', async () => (await processesOf(context.idempotencyKey)).length > 0);
  abort.abort();
  expect(await stopped).toMatchObject({ isError: true, note: 'aborted', aborted: 'without_effect' });
});
