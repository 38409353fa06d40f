import { expect, test } from 'vitest';
import { eventLine } from '../../../client/cli/event-line.ts';
import { Progress } from '../../../client/cli/progress.ts';
import type { RunEvent, TextEvent } from '../../../client/index.ts';
import type { JournalEvent } from '../../../workflows/core/journal.ts';

let seq = 0;
function event(body: JournalEvent, more: Partial<TextEvent> & { readonly ms?: number } = {}): RunEvent {
  seq += 1;
  const { ms = 0, ...rest } = more;
  const recorded = { stream: 's', seq, turn: 's/1', at: new Date(ms).toISOString(), event: body };
  return { type: 'event', event: recorded, text: null, call: null, ...rest };
}

const piece = (attempt: string, n: number, chunk: string, channel: 'text' | 'reasoning' = 'text'): RunEvent => ({
  type: 'delta',
  step: 0,
  attempt,
  n,
  channel,
  chunk,
});

const END = {
  detail: null,
  decidedBy: 'model',
  signal: 'stop',
  failure: null,
  note: null,
  message: null,
  usage: null,
} as const;
const ended = (attempt: string, text: string | null) =>
  event({ kind: 'stream.ended', layer: 'stream', step: 0, attempt, reason: 'stop', ...END }, { text });
const failed = event({
  kind: 'stream.ended',
  layer: 'stream',
  step: 0,
  attempt: 'x',
  reason: 'error',
  ...END,
  failure: 'overloaded',
});
const started = (key: string, ms: number) => event({ kind: 'call.started', layer: 'batch', key, attempt: 'x' }, { ms });
const finished = (key: string, status: 'ok' | 'error', ms: number, note: string | null, args: string) =>
  event(
    { kind: 'call.finished', layer: 'batch', key, tool: 'shell', status, note },
    { ms, call: { tool: 'shell', arguments: args, status, result: null } },
  );
const discarded = (attempt: string) => event({ kind: 'attempt.discarded', layer: 'stream', step: 0, attempt });

const shown = (items: readonly RunEvent[]) => {
  const progress = new Progress();
  return items.map((item) => progress.feed(item)).join('');
};

test.each<[string, readonly RunEvent[], string]>([
  ['text as it comes, once', [piece('a', 0, 'One '), piece('a', 1, 'two'), ended('a', 'One two')], 'One two\n'],
  [
    'the end of a text whose last pieces were never sent',
    [piece('a', 0, 'One '), ended('a', 'One two three')],
    'One two three\n',
  ],
  ['a text without pieces', [ended('a', 'One\n')], 'One\n'],
  ['a reply of calls alone', [ended('a', null)], ''],
  ['no reasoning', [piece('a', 0, 'hm', 'reasoning'), ended('a', 'One')], 'One\n'],
  [
    'a call with its duration',
    [started('k', 0), finished('k', 'ok', 1_500, null, '{"command":"ls"}')],
    '  ✓ shell ls  1.5 s\n',
  ],
  [
    'a failed call with its note',
    [started('k', 0), finished('k', 'error', 20, 'exit 1', '{}')],
    '  ✗ shell  20 ms  exit 1\n',
  ],
  [
    'a call below a text',
    [piece('a', 0, 'One'), ended('a', 'One'), finished('k', 'ok', 0, null, '{}')],
    'One\n  ✓ shell\n',
  ],
  ['a request without a reply', [failed], '  ✗ no reply: overloaded\n'],
  [
    'a dropped attempt and the next one',
    [piece('a', 0, 'Half'), discarded('a'), piece('b', 0, 'Whole'), ended('b', 'Whole')],
    'Half\n  ↻ the text above was not kept\nWhole\n',
  ],
  [
    'a request that broke off',
    [piece('x', 0, 'Half'), failed],
    'Half\n  ↻ the text above was not kept\n  ✗ no reply: overloaded\n',
  ],
  [
    'a summary that stands for a part of the conversation, not its text',
    [
      ended('a', null),
      event({
        kind: 'context.compacted',
        layer: 'turn',
        step: 0,
        message: 'h',
        replaced: 12,
        kept: 2,
        beforeTokens: 9,
        afterTokens: 3,
      }),
    ],
    '  ⋯ the conversation became too long: a summary stands for 12 messages\n',
  ],
  [
    'who goes on for a model that is overloaded',
    [event({ kind: 'model.switched', layer: 'turn', from: 'first', to: 'second', cause: 'overloaded' })],
    '  ⇄ first is overloaded: second answers for the rest of this turn\n',
  ],
  ['a dropped attempt that nobody saw', [discarded('a')], ''],
  [
    'how to answer what a person is asked',
    [
      event({
        kind: 'effect.asked',
        layer: 'batch',
        approval: 'out_1',
        key: 'k',
        tool: 'shell',
        attempt: 'x',
        expiresAt: null,
      }),
    ],
    '  ? a person is asked what became of that call: pawl outcome out_1 …\n',
  ],
  [
    'that a call was taken back',
    [event({ kind: 'effect.undone', layer: 'batch', key: 'k', attempt: 'x', as: 'undone', note: null })],
    '  ↶ what that call had done was taken back\n',
  ],
  ['no escape sequences', [piece('a', 0, '\u001b[2Jboo'), ended('a', '\u001b[2Jboo')], '[2Jboo\n'],
])('shows %s', (_name, items, text) => {
  expect(shown(items)).toBe(text);
});

test('an event is one line of its facts', () => {
  const item = event({ kind: 'turn.opened', layer: 'turn', n: 1, input: 'in_1' });
  expect(eventLine(item)).toBe(`${String(seq).padStart(5)}  1970-01-01T00:00:00.000Z  turn.opened  n=1 input=in_1`);
  expect(eventLine(piece('a', 0, 'x'))).toBeNull();
});
