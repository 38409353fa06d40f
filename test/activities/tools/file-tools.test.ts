import { chmod, mkdir, readdir, readFile as readBytes, stat, symlink, writeFile as writeBytes } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { ToolContext } from '../../../activities/tools/define-tool.ts';
import { editFile } from '../../../activities/tools/edit-file.ts';
import { listFiles } from '../../../activities/tools/list-files.ts';
import { readFile } from '../../../activities/tools/read-file.ts';
import { searchText } from '../../../activities/tools/search-text.ts';
import { sha256 } from '../../../activities/tools/workspace-file.ts';
import { writeFile } from '../../../activities/tools/write-file.ts';
import { call, contextFor, freshWorkspace } from './tool-context.ts';

let workspace: string;
const here = (path: string) => join(workspace, path);
const put = (path: string, content: string | Buffer) => writeBytes(here(path), content);
const content = (path: string) => readBytes(here(path), 'utf8');

beforeEach(async () => {
  ({ workspace } = freshWorkspace());
  await mkdir(here('src'), { recursive: true });
});

describe('read_file', () => {
  const read = (args: object, changes: Partial<ToolContext> = {}) =>
    call(readFile, args, contextFor(workspace, changes));

  it.each([
    ['', '(The file is empty.)'],
    ['a\nb\n', 'a\nb'],
    ['a\r\nb', 'a\r\nb'],
    ['\ufeffbom', '\ufeffbom'],
    ['🎫 é', '🎫 é'],
  ])('gives %j as it is', async (bytes, text) => {
    await put('f', bytes);
    expect(await read({ path: 'f' })).toEqual({ isError: false, text });
  });

  it('reads a part, and says where to go on', async () => {
    await put('f', 'one\ntwo\nthree\nfour\n');
    expect((await read({ path: 'f', offset: 2, limit: 2 })).text).toBe(
      'two\nthree\n[More follows: go on with offset 4.]',
    );
    expect((await read({ path: 'f', offset: 4 })).text).toBe('four');
    expect(await read({ path: 'f', offset: 9 })).toMatchObject({ isError: true, note: 'past_the_end' });
  });

  it('going on from part to part gives every line once', async () => {
    const lines = Array.from({ length: 3_000 }, (_, i) => `line ${i} ${'🎫'.repeat(i % 7)}`);
    await put('f', lines.join('\n'));
    const seen: string[] = [];
    for (let offset: number | undefined = 1; offset !== undefined; ) {
      const { text } = await read({ path: 'f', offset }, { resultChars: 2_000 });
      const [, body = text, next] = /^(.*)\n\[More follows: go on with offset (\d+)\.\]$/s.exec(text) ?? [];
      seen.push(...body.split('\n'));
      offset = next === undefined ? undefined : Number(next);
    }
    expect(seen).toEqual(lines);
  });

  it('a line of 5 MB is cut on a character border', async () => {
    await put('f', `${'🎫'.repeat(1_250_000)}\nnext`);
    const { text } = await read({ path: 'f' });
    expect(text).toMatch(/^(🎫)+\n\[Line 1 is longer than this; the next line is at offset 2\.\]$/u);
    expect((await read({ path: 'f', offset: 2 })).text).toBe('next');
  });

  it('describes a binary file with its size and hash', async () => {
    const bytes = Buffer.from([1, 2, 0, 3]);
    await put('f', bytes);
    expect((await read({ path: 'f' })).text).toBe(`[f is a binary file, not shown: 4 bytes, sha256 ${sha256(bytes)}.]`);
  });
});

describe('list_files', () => {
  it('lists sorted, marks folders and links, enters neither links nor closed folders', async () => {
    await mkdir(here('src/deep/deeper'), { recursive: true });
    await mkdir(here('node_modules/x'), { recursive: true });
    await symlink('/', here('root'));
    for (const path of ['b.txt', 'a\nb', 'src/main.ts', 'src/deep/x', 'src/deep/deeper/y', 'node_modules/x/z'])
      await put(path, '');
    const list = async (args: object) => (await call(listFiles, args, contextFor(workspace))).text.split('\n');
    expect(await list({})).toEqual(['"a\\nb"', 'b.txt', 'node_modules/', 'root@', 'src/']);
    expect((await list({ depth: 3 })).slice(4)).toEqual([
      'src/',
      'src/deep/',
      'src/deep/deeper/',
      'src/deep/x',
      'src/main.ts',
    ]);
    expect(await list({ path: 'src/deep/deeper' })).toEqual(['y']);
  });

  it('stops at its limits and says so', async () => {
    for (let i = 0; i < 1_100; i++) await put(`src/f${i}`, '');
    const { text } = await call(listFiles, { path: 'src' }, contextFor(workspace));
    expect(text.split('\n')).toHaveLength(1_001);
    expect(text.endsWith('[There is more. List a folder further down, or use search_text.]')).toBe(true);
    await call(listFiles, { path: 'src' }, contextFor(workspace, { resultChars: 500 }));
  });
});

describe('search_text', () => {
  const search = async (args: object) => (await call(searchText, args, contextFor(workspace))).text.split('\n');

  it('finds lines by pattern, in the files that are meant', async () => {
    await put('src/a.ts', 'const a = 12;\nlet b = 3;\n');
    await put('src/b.md', 'CONST 99\n');
    await put('src/c.bin', Buffer.from('const 1\0'));
    await symlink('a.ts', here('src/link.ts'));
    const summary = (matches: number, files: number, skipped: number) =>
      `[${matches} matching lines in ${files} files; ${skipped} files not searched: binary, too large or not readable]`;
    expect(await search({ pattern: '^const.*\\d' })).toEqual(['src/a.ts:1:const a = 12;', summary(1, 2, 1)]);
    expect(await search({ pattern: 'const', ignore_case: true, include: '*.{md,txt}' })).toEqual([
      'src/b.md:1:CONST 99',
      summary(1, 1, 0),
    ]);
    expect(await search({ pattern: 'b = 3;', path: 'src/a.ts', literal: true })).toEqual([
      'src/a.ts:2:let b = 3;',
      summary(1, 1, 0),
    ]);
    expect(await search({ pattern: 'a.*c', literal: true, include: 'src/**/*.ts' })).toEqual([summary(0, 1, 0)]);
  });

  it('answers for a pattern that is none', async () => {
    expect(await call(searchText, { pattern: '(' }, contextFor(workspace))).toMatchObject({
      isError: true,
      note: 'bad_pattern',
    });
  });

  it('shows a piece of a long line around the match', async () => {
    await put('f', `${'x'.repeat(100_000)}needle${'🎫'.repeat(100_000)}`);
    const [line] = await search({ pattern: 'needle' });
    expect(line).toMatch(/^f:1:\.\.\.x+needle🎫/u);
    expect(line?.length).toBeLessThan(400);
  });

  // A pattern that would run for years in the worker runs in a process that can be ended.
  it('a pattern that never ends is ended by a cancel', async () => {
    await put('f', `${'a'.repeat(60)}b`);
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 300);
    const result = await call(searchText, { pattern: '^(a+)+$' }, contextFor(workspace, { signal: abort.signal }));
    expect(result).toMatchObject({ isError: true, note: 'aborted' });
  });
});

describe('write_file', () => {
  const write = (path: string, text: string, changes: Partial<ToolContext> = {}) =>
    call(writeFile, { path, content: text }, contextFor(workspace, changes));

  it('makes a file and its folders, and leaves nothing else', async () => {
    expect(await write('new/deep/f.txt', 'é\n')).toEqual({ isError: false, text: 'Wrote new/deep/f.txt (3 bytes).' });
    expect(await content('new/deep/f.txt')).toBe('é\n');
    expect(await readdir(here('new/deep'))).toEqual(['f.txt']);
  });

  it('keeps the mode of a file that it replaces', async () => {
    await put('run.sh', 'old');
    await chmod(here('run.sh'), 0o750);
    await write('run.sh', 'new');
    expect((await stat(here('run.sh'))).mode & 0o7777).toBe(0o750);
  });

  it('notes the hashes before and after', async () => {
    const context = contextFor(workspace);
    expect(await writeFile.prepare?.({ path: './f', content: 'x' }, context)).toEqual({
      path: 'f',
      before: null,
      after: sha256('x'),
    });
    await put('f', 'old');
    expect(await writeFile.prepare?.({ path: 'f', content: 'x' }, context)).toMatchObject({ before: sha256('old') });
  });

  it('the second attempt drops what a killed first one left, and answers the same', async () => {
    const context = contextFor(workspace);
    await put(`.pawl-${sha256(context.idempotencyKey).slice(0, 16)}-x.tmp`, 'half');
    const first = await call(writeFile, { path: 'f', content: 'x' }, context);
    expect(await call(writeFile, { path: 'f', content: 'x' }, context)).toEqual(first);
    expect(await readdir(workspace)).toEqual(['f', 'src']);
  });

  it('a cancel before it leaves the file as it was', async () => {
    await put('f', 'old');
    const result = await write('f', 'new', { signal: AbortSignal.abort(new Error('CANCELLED')) });
    expect(result).toMatchObject({
      isError: true,
      note: 'aborted',
      text: 'The call was stopped before it changed anything.',
    });
    expect(await content('f')).toBe('old');
  });

  it('refuses half a character', async () => {
    expect(await write('f', 'a\ud83c')).toMatchObject({ isError: true, note: 'bad_text' });
  });
});

describe('edit_file', () => {
  const args = { path: 'f', old_string: 'b', new_string: '$&c', replace_all: false };
  const edit = (changes: object = {}) => call(editFile, { ...args, ...changes }, contextFor(workspace));

  it.each([
    ['one match', 'abc', {}, 'a$&cc', 'Edited f: 1 replacement.'],
    ['every match', 'abab', { replace_all: true }, 'a$&ca$&c', 'Edited f: 2 replacements.'],
    ['a deletion', 'abc', { new_string: '' }, 'ac', 'Edited f: 1 replacement.'],
    ['a file with BOM and CRLF', '\ufeffa\r\nb\r\n', {}, '\ufeffa\r\n$&c\r\n', 'Edited f: 1 replacement.'],
  ])('%s', async (_, before, changes, after, text) => {
    await put('f', before);
    expect(await edit(changes)).toEqual({ isError: false, text });
    expect(await content('f')).toBe(after);
  });

  it.each([
    ['no match', 'xyz', {}, 'no_match'],
    ['two matches', 'bab', {}, 'many_matches'],
    ['matches that overlap', 'aaa', { old_string: 'aa' }, 'many_matches'],
    ['nothing to do', 'abc', { new_string: 'b' }, 'no_change'],
    ['half a character', 'abc', { new_string: '\ud83c' }, 'bad_text'],
    ['bytes that are no text', Buffer.from([0x62, 0xff]), {}, 'not_text'],
    ['a file that is not there', 'abc', { path: 'none' }, 'ENOENT'],
  ])('%s is refused, and the file stays', async (_, before, changes, note) => {
    await put('f', before);
    expect(await edit(changes)).toMatchObject({ isError: true, note });
    expect(await readBytes(here('f'))).toEqual(Buffer.from(before));
  });

  it('says that line ends differ', async () => {
    await put('f', 'a\r\nb\r\n');
    expect((await edit({ old_string: 'a\nb' })).text).toContain('CRLF');
  });

  describe('after a lost attempt', () => {
    const prepared = async () => {
      await put('f', 'abc');
      const context = contextFor(workspace);
      return { ...context, details: await editFile.prepare?.(args, context) };
    };

    it('notes the hashes', async () => {
      expect((await prepared()).details).toEqual({
        path: 'f',
        before: sha256('abc'),
        after: sha256('a$&cc'),
        replacements: 1,
      });
    });

    it.each([
      ['it happened', 'a$&cc', { kind: 'done', result: { isError: false, text: 'Edited f: 1 replacement.' } }],
      ['it did not happen', 'abc', { kind: 'absent' }],
      ['somebody changed the file', 'other', { kind: 'unknown' }],
    ])('%s', async (_, found, expected) => {
      const context = await prepared();
      await put('f', found);
      expect(await editFile.reconcile?.(args, context)).toEqual(expected);
    });

    it('knows nothing without notes', async () => {
      await put('f', 'a$&cc');
      expect(await editFile.reconcile?.(args, contextFor(workspace))).toEqual({ kind: 'unknown' });
    });

    it('a file that is as it should become is a success, not a second edit', async () => {
      const context = await prepared();
      const first = await editFile.run(args, context);
      expect(await editFile.run(args, context)).toEqual(first);
      expect(await content('f')).toBe('a$&cc');
    });

    it('a file that changed since it was prepared is not touched', async () => {
      const context = await prepared();
      await put('f', 'b other');
      expect(await editFile.run(args, context)).toMatchObject({ isError: true, note: 'changed' });
      expect(await content('f')).toBe('b other');
    });
  });
});
