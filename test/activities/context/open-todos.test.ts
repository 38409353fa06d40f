import { describe, expect, test } from 'vitest';
import { openTodos } from '../../../activities/context/open-todos.ts';
import type { Message } from '../../../workflows/core/transcript.ts';

const wrote = (...todos: [content: string, status: string][]): Message => ({
  kind: 'assistant',
  text: '',
  reasoning: '',
  calls: [
    {
      id: 'c',
      name: 'todo_write',
      arguments: JSON.stringify({ todos: todos.map(([content, status]) => ({ content, status })) }),
    },
  ],
  provider: 'p',
  model: 'm',
  extra: {},
  cut: false,
});
const result = (isError = false): Message => ({
  kind: 'tool_result',
  ordinal: 0,
  callId: 'c',
  tool: 'todo_write',
  text: '',
  isError,
  blob: null,
});
const summary = (...todos: string[]): Message => ({ kind: 'compaction', text: '', keptFrom: 1, objective: '', todos });
const user: Message = { kind: 'user', text: 'hi', input: 'in', source: 'prompt' };

describe('what is still to be done', () => {
  test.each<[name: string, chain: Message[], open: string[]]>([
    ['nothing was ever planned', [user], []],
    ['the newest list counts', [wrote(['a', 'pending']), result(), wrote(['b', 'in_progress']), result()], ['b']],
    ['what is completed is done', [wrote(['a', 'completed'], ['b', 'pending']), result()], ['b']],
    // Trap: a list that was refused never took the place of the one before.
    ['a refused list does not', [wrote(['a', 'pending']), result(), wrote(['b', 'pending']), result(true)], ['a']],
    ['one without a result yet does not', [wrote(['a', 'pending']), result(), wrote()], ['a']],
    ['behind a summary, what it carries', [summary('- [pending] a', '- [in_progress] b')], ['a', 'b']],
    ['a newer list counts more', [summary('- [pending] a'), wrote(['b', 'pending']), result()], ['b']],
    ['an empty list is all done', [wrote(['a', 'pending']), result(), wrote(), result()], []],
  ])('%s', (_name, chain, open) => {
    expect(openTodos(chain)).toEqual(open);
  });

  // Trap: a turn that waits for others is nudged to do their work itself.
  test('what is in progress while sub-agents work in the background is theirs', () => {
    const list = [wrote(['a', 'pending'], ['b', 'in_progress']), result()];
    expect(openTodos(list, 1)).toEqual(['a']);
    expect(openTodos(list, 0)).toEqual(['a', 'b']);
    expect(openTodos([summary('- [pending] a', '- [in_progress] b')], 2)).toEqual(['a']);
  });
});
