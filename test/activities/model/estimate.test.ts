import { expect, test } from 'vitest';
import { estimateMessage, estimateText, estimateTools } from '../../../activities/model/estimate.ts';

test.each([
  ['', 0],
  ['abcd', 1],
  ['abcde', 2],
  ['🎫', 1],
  ['票票票票', 3],
])('%j is about %i tokens', (text, tokens) => {
  expect(estimateText(text)).toBe(tokens);
});

test('a message counts its text, its calls and what must go back', () => {
  const base = {
    kind: 'assistant',
    text: 'abcd',
    reasoning: 'not sent by itself',
    provider: 'p',
    model: 'm',
    cut: false,
  } as const;
  expect(estimateMessage({ ...base, calls: [], extra: {} })).toBe(5);
  expect(estimateMessage({ ...base, calls: [{ id: 'a', name: 'x', arguments: '{"a":1}' }], extra: {} })).toBe(16);
  expect(estimateMessage({ ...base, calls: [], extra: { reasoning_content: 'abcd' } })).toBe(12);
});

test('tools count with their schema', () => {
  const tool = { name: 'abcd', description: 'abcd', parameters: {}, effect: 'none', runs: 'activity' } as const;
  expect(estimateTools([tool, tool])).toBe(22);
});
