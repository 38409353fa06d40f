import { execFileSync } from 'node:child_process';
import { constants } from 'node:fs';
import { mkdir, readFile as readBytes, rename, symlink, writeFile as writeBytes } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { listFiles } from '../../../activities/tools/list-files.ts';
import { readFile } from '../../../activities/tools/read-file.ts';
import { isInside, fileName, openInside, placeToRead } from '../../../activities/tools/workspace-path.ts';
import { writeFile } from '../../../activities/tools/write-file.ts';
import { call, contextFor, freshWorkspace } from './tool-context.ts';

let outside: string;
let workspace: string;

beforeEach(async () => {
  ({ outside, workspace } = freshWorkspace());
  await mkdir(join(workspace, 'dir'), { recursive: true });
  await mkdir(join(outside, 'ws-evil'));
  for (const path of ['ws/dir/in.txt', 'ws-evil/secret.txt', 'secret.txt']) await writeBytes(join(outside, path), path);
  await symlink('dir', join(workspace, 'link-in'));
  await symlink('dir/in.txt', join(workspace, 'leaf-in'));
  await symlink('..', join(workspace, 'link-up'));
  await symlink('../secret.txt', join(workspace, 'leaf-out'));
  await symlink('../new.txt', join(workspace, 'leaf-nowhere'));
  await symlink('loop', join(workspace, 'loop'));
});

describe('reading', () => {
  it.each([['dir/in.txt'], ['./dir//in.txt'], ['nothing/../dir/in.txt'], ['link-in/in.txt'], ['leaf-in']])(
    '%s is inside',
    async (path) => {
      expect(await call(readFile, { path }, contextFor(workspace))).toEqual({ isError: false, text: 'ws/dir/in.txt' });
    },
  );

  it('takes an absolute path inside', async () => {
    expect((await call(readFile, { path: join(workspace, 'dir/in.txt') }, contextFor(workspace))).isError).toBe(false);
  });

  it.each([
    ['../secret.txt', 'outside_workspace'],
    ['dir/../../secret.txt', 'outside_workspace'],
    ['../ws-evil/secret.txt', 'outside_workspace'],
    ['/etc/passwd', 'outside_workspace'],
    ['/no/such/file', 'outside_workspace'],
    ['link-up/secret.txt', 'outside_workspace'],
    ['link-up/no-such-file', 'outside_workspace'],
    ['leaf-out', 'outside_workspace'],
    ['leaf-nowhere', 'link'],
    ['loop', 'ELOOP'],
    ['dir/in.txt\0.png', 'bad_path'],
    ['dir', 'EISDIR'],
    ['dir/in.txt/deeper', 'ENOTDIR'],
    ['nothing.txt', 'ENOENT'],
    ['x'.repeat(5_000), 'ENAMETOOLONG'],
    ['~/.ssh/id_rsa', 'ENOENT'],
  ])('%j is refused as %s', async (path, note) => {
    const result = await call(readFile, { path }, contextFor(workspace));
    expect(result).toMatchObject({ isError: true, note });
    expect(result.text).not.toContain(outside);
  });

  it('lists no folder outside', async () => {
    for (const path of ['..', 'link-up', '/']) {
      expect(await call(listFiles, { path }, contextFor(workspace))).toMatchObject({
        isError: true,
        note: 'outside_workspace',
      });
    }
  });

  // Opening a pipe waits for its other end, unless told not to.
  it('does not wait for a pipe, and writes into none', async () => {
    execFileSync('mkfifo', [join(workspace, 'pipe')]);
    const refused = { isError: true, note: 'not_a_file' };
    expect(await call(readFile, { path: 'pipe' }, contextFor(workspace))).toMatchObject(refused);
    expect(await call(writeFile, { path: 'pipe', content: 'x' }, contextFor(workspace))).toMatchObject(refused);
  });

  // The place was looked at, then a folder on its way was swapped for a link to the outside.
  it('refuses a folder that was swapped for a link after the look', async () => {
    await writeBytes(join(workspace, 'dir/secret.txt'), 'inside');
    const place = await placeToRead(workspace, 'dir/secret.txt');
    await rename(join(workspace, 'dir'), join(workspace, 'old'));
    await symlink('..', join(workspace, 'dir'));
    await expect(openInside(workspace, place, constants.O_RDONLY)).rejects.toMatchObject({ note: 'outside_workspace' });
  });

  it('refuses a file that was swapped for a link after the look', async () => {
    const place = await placeToRead(workspace, 'dir/in.txt');
    await rename(join(workspace, 'dir/in.txt'), join(workspace, 'dir/old.txt'));
    await symlink('old.txt', join(workspace, 'dir/in.txt'));
    await expect(openInside(workspace, place, constants.O_RDONLY)).rejects.toMatchObject({ code: 'ELOOP' });
  });
});

describe('writing', () => {
  it.each([
    ['leaf-in', 'link'],
    ['leaf-out', 'link'],
    ['leaf-nowhere', 'link'],
    ['link-up/secret.txt', 'outside_workspace'],
    ['link-up/new.txt', 'outside_workspace'],
    ['link-up/new/new.txt', 'outside_workspace'],
    ['leaf-nowhere/new.txt', 'link'],
    ['../ws-evil/secret.txt', 'outside_workspace'],
    ['/etc/pawl-test', 'outside_workspace'],
    ['dir', 'EISDIR'],
    ['.', 'EISDIR'],
    ['dir/in.txt/deeper', 'ENOTDIR'],
    ['a\0b', 'bad_path'],
  ])('%j is refused as %s', async (path, note) => {
    expect(await call(writeFile, { path, content: 'evil' }, contextFor(workspace))).toMatchObject({
      isError: true,
      note,
    });
    expect(await readBytes(join(outside, 'secret.txt'), 'utf8')).toBe('secret.txt');
    expect(await readBytes(join(workspace, 'dir/in.txt'), 'utf8')).toBe('ws/dir/in.txt');
  });

  it('goes through a folder link that stays inside', async () => {
    expect(await call(writeFile, { path: 'link-in/new.txt', content: 'x' }, contextFor(workspace))).toMatchObject({
      isError: false,
      text: 'Wrote dir/new.txt (1 bytes).',
    });
  });
});

it.each([
  ['/ws', '/ws', true],
  ['/ws', '/ws/a', true],
  ['/ws', '/ws/..a', true],
  ['/ws', '/ws-evil/a', false],
  ['/ws', '/', false],
  ['/', '/etc', true],
])('isInside(%s, %s) is %s', (folder, path, inside) => {
  expect(isInside(folder, path)).toBe(inside);
});

// Trap: two writers of one file that spell it differently would run side by side.
describe('one file has one name, however its path is spelled', () => {
  it.each(['a/b', './a//b', 'x/../a/b', 'a/b/', '/ws/a/b', '/ws/./a/b', '../ws/a/b'])('%s', (path) => {
    expect(fileName('/ws', path)).toBe('a/b');
  });

  it.each([
    ['.', '.'],
    ['/ws', '.'],
    ['/ws-evil/a', '../ws-evil/a'],
    ['/etc/passwd', '../etc/passwd'],
  ])('%s is %s', (path, name) => {
    expect(fileName('/ws', path)).toBe(name);
  });
});
