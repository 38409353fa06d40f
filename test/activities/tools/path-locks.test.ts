import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { refOf } from '../../../activities/turn/call-ref.ts';
import { builtinTools } from '../../../activities/tools/builtin.ts';
import { startable } from '../../../workflows/core/batch.ts';
import type { CallRef } from '../../../workflows/core/tools.ts';
import { POLICY } from '../../../workflows/core/policy.ts';

const ARGUMENTS = {
  read_file: {},
  list_files: { depth: 1 },
  search_text: { pattern: 'x' },
  write_file: { content: '' },
  edit_file: { old_string: 'x', new_string: 'y' },
} as const;
type Name = keyof typeof ARGUMENTS;

function toolOf(name: Name) {
  const tool = builtinTools.find((each) => each.name === name);
  if (!tool) throw new Error(`no tool ${name}`);
  return tool;
}

const locksOf = (name: Name, path: string) => toolOf(name).locks({ ...ARGUMENTS[name], path }, '/ws');

function call(ordinal: number, { name, path }: Asked): CallRef {
  const args = { ...ARGUMENTS[name], path };
  return refOf({ id: 't', workspacePath: '/ws' }, toolOf(name), ordinal, { ok: true, args, canonical: '' }, 'run');
}

interface Asked {
  readonly name: Name;
  readonly path: string;
}

const writes = ({ name }: Asked) => name === 'write_file' || name === 'edit_file';
const looksAtAll = ({ name }: Asked) => name === 'list_files' || name === 'search_text';
const segments = (path: string) => path.split('/').filter((part) => part !== '.');
const isIn = (path: string, folder: string) => segments(folder).every((part, at) => segments(path)[at] === part);

/** By the paths themselves, which the workflow never sees. */
function conflict(one: Asked, other: Asked): boolean {
  if (!writes(one) && !writes(other)) return false;
  if (isIn(one.path, other.path) && isIn(other.path, one.path)) return true;
  // A file can't be a folder as well: who writes both is told so in order.
  if (writes(one) && writes(other)) return isIn(one.path, other.path) || isIn(other.path, one.path);
  const [reader, writer] = writes(one) ? [other, one] : [one, other];
  return looksAtAll(reader) && isIn(writer.path, reader.path);
}

describe('what the file tools lock', () => {
  it.each<[Name, string]>([
    ['read_file', 'read'],
    ['list_files', 'read_tree'],
    ['search_text', 'read_tree'],
  ])('%s: %s', (name, mode) => {
    for (const path of ['/ws/a/b', './a/b', 'a/b']) expect(locksOf(name, path)).toEqual([{ resource: 'a/b', mode }]);
  });

  it.each<Name>(['write_file', 'edit_file'])('%s: the file, and something in each folder above', (name) => {
    for (const path of ['/ws/a/b/c', './a/x/../b/c', 'a/b/c']) {
      expect(locksOf(name, path)).toEqual([
        { resource: 'a/b/c', mode: 'write' },
        { resource: '.', mode: 'write_below' },
        { resource: 'a', mode: 'write_below' },
        { resource: 'a/b', mode: 'write_below' },
      ]);
    }
  });

  // Trap: the workflow has only hashes, which tell nothing of one path being above another.
  it('two calls run side by side exactly where neither writes what the other one looks at', () => {
    const paths = fc.constantFrom('.', 'a', 'a/b', 'a/c', 'a/b/d', 'ab', 'e/f');
    const asked = fc.record({ name: fc.constantFrom(...(Object.keys(ARGUMENTS) as Name[])), path: paths });
    fc.assert(
      fc.property(asked, asked, (one, other) => {
        const calls = [call(0, one), call(1, other)].map((ref) => ({ ref, state: 'queued' }) as const);
        expect(startable(calls)).toHaveLength(conflict(one, other) ? 1 : 2);
      }),
      { numRuns: 1_000 },
    );
  });

  // Trap: a path of a thousand folders would put a thousand keys into a history.
  it('a path of any depth takes so many keys at most, and is still kept apart from its readers', () => {
    const deep = Array.from({ length: 1_000 }, () => 'd').join('/');
    expect(locksOf('write_file', `${deep}/f`)).toHaveLength(POLICY.tools.lockDepth + 1);
    for (const name of ['read_file', 'list_files'] as const) {
      const calls = [call(0, { name: 'write_file', path: `${deep}/f` }), call(1, { name, path: deep })];
      expect(startable(calls.map((ref) => ({ ref, state: 'queued' })))).toHaveLength(1);
    }
  });
});
