import { describe, expect, it } from 'vitest';
import { readOutput } from '../../../activities/tools/read-output.ts';
import { todoWrite } from '../../../activities/tools/todo-write.ts';
import { call, contextFor } from './tool-context.ts';

describe('todo_write', () => {
  const todo = (content: string, status = 'pending') => ({ content, status });
  const context = contextFor('/nowhere');

  it('counts what is on the list', async () => {
    const todos = [todo('a', 'completed'), todo('b', 'in_progress'), todo('c')];
    expect(await call(todoWrite, { todos }, context)).toEqual({
      isError: false,
      text: 'The list is kept: 1 completed, 1 in progress, 1 pending.',
    });
    expect((await call(todoWrite, { todos: [] }, context)).isError).toBe(false);
  });

  it('refuses two at a time, and one item twice', async () => {
    expect(
      await call(todoWrite, { todos: [todo('a', 'in_progress'), todo('b', 'in_progress')] }, context),
    ).toMatchObject({ isError: true, note: 'bad_list' });
    expect(await call(todoWrite, { todos: [todo('a'), todo('a')] }, context)).toMatchObject({
      isError: true,
      note: 'bad_list',
    });
  });
});

describe('read_output', () => {
  const id = 'a'.repeat(64);
  const context = (kept: Buffer | null, resultChars = 30_000) =>
    contextFor('/nowhere', { resultChars, readBlob: (hash) => Promise.resolve(hash === id ? kept : null) });

  // Bytes that are no UTF-8 and characters of many bytes: page by page it is the same output.
  it('pages through to the end, without losing or doubling a byte', async () => {
    const text = `${'line ü 🎫\n'.repeat(100)}end`;
    const bytes = Buffer.concat([Buffer.from(text), Buffer.from([0xff, 0xfe]), Buffer.from('🎫')]);
    let whole = '';
    let offset: number | undefined = 0;
    for (let pages = 0; offset !== undefined; pages++) {
      expect(pages).toBeLessThan(100);
      const result = await call(readOutput, { id, offset }, context(bytes, 300));
      const [, page = '', next] =
        /^(.*?)(?:\n\[More follows: go on with offset (\d+) of \d+\.\])?$/s.exec(result.text) ?? [];
      whole += page;
      offset = next === undefined ? undefined : Number(next);
    }
    expect(whole).toBe(`${text}\ufffd\ufffd🎫`);
  });

  it('what is not kept, not text, or at an end is a result', async () => {
    const read = (kept: Buffer | null, offset = 0) => call(readOutput, { id, offset }, context(kept));
    expect(await read(null)).toMatchObject({ isError: true, note: 'no_output' });
    expect(await read(Buffer.from([0, 1]))).toMatchObject({ isError: true, note: 'binary' });
    expect(await read(Buffer.from('abc'), 3)).toMatchObject({ isError: true, note: 'past_the_end' });
    expect(await call(readOutput, { id: 'b'.repeat(64) }, context(Buffer.from('x')))).toMatchObject({
      note: 'no_output',
    });
  });
});
