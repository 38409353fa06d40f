import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RepetitionWatch } from '../../../activities/model/repetition-watch.ts';
import { POLICY } from '../../../workflows/core/policy.ts';

const { repeats, repeatedChars, periodMaxChars } = POLICY.doomLoop;
const loops = (text: string) => new RepetitionWatch().feed(text);

/** Text without a period: every word is another one. */
function prose(chars: number, seed = 1): string {
  let state = seed;
  let text = '';
  while (text.length < chars) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    text += `${state.toString(36)} `;
  }
  return text.slice(0, chars);
}

/** How many characters in, or null where it never fires. */
function firesAt(text: string): number | null {
  const watch = new RepetitionWatch();
  for (let n = 0; n < text.length; n += 1) if (watch.feed(text[n] ?? '')) return n + 1;
  return null;
}

describe('a loop', () => {
  test.each([
    ['one character', 'a'],
    ['a word', 'the '],
    ['a word of the length of the n-gram', 'sixteen letters '],
    ['a sentence', 'I will look at the file again to be sure. '],
    ['a sentence with a separator in it', `Let me check.\n${'-'.repeat(60)}\nWait, that is wrong.\n`],
    ['a paragraph', prose(700)],
    ['the longest period', prose(periodMaxChars)],
    ['other letters', 'それでは、もう一度ファイルを確認します。'],
    ['halves of characters', '🎫🎟'],
  ])('of %s is seen after a few repeats, also behind a long text', (_name, period) => {
    const needed = Math.max(repeatedChars, repeats * period.length);
    const before = `${prose(20_000, 7)}\n`;
    const fired = firesAt(before + period.repeat(Math.ceil((needed + 3 * period.length) / period.length) + 20));
    expect(fired).not.toBeNull();
    // First time, n-gram until it is recognised, and once more where a shorter period misled at first.
    expect((fired ?? 0) - before.length).toBeLessThanOrEqual(needed + 2 * period.length + 32);
    expect((fired ?? 0) - before.length).toBeGreaterThan(needed);
  });

  test('stays one', () => {
    const watch = new RepetitionWatch();
    expect(watch.feed('no '.repeat(5_000))).toBe(true);
    expect(watch.feed(prose(10_000))).toBe(true);
  });

  test('that begins in the middle of the text is seen whatever came before', () => {
    const anything = fc.string({ unit: 'binary', maxLength: 300 });
    const period = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 120 });
    fc.assert(
      fc.property(anything, period, (before, words) => {
        expect(loops(before + words.repeat(Math.ceil((repeatedChars + 1_000) / words.length)))).toBe(true);
      }),
    );
  });
});

describe('no loop:', () => {
  const rows = (count: number, row: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => row(n)).join('\n');
  test.each([
    ['a long text', prose(200_000)],
    ['a table', rows(400, (n) => `| ${n} | open | nobody | ${(n * 7_919) % 1_000} |`)],
    ['a table of equal rows', rows(120, () => '| yes | no | n/a |')],
    ['a wide table head', `|${'---|'.repeat(120)}`],
    ['a list', rows(2_000, (n) => `- [ ] item ${n}`)],
    ['code with repeated lines', rows(60, () => '    assert.equal(next(), undefined);')],
    ['closing brackets', rows(80, (n) => `${' '.repeat(80 - n)}}`)],
    ['numbers in a row', Array.from({ length: 3_000 }, (_, n) => n).join(', ')],
    ['an array of zeros', `[${'0, '.repeat(900)}0]`],
    ['a row of one separator', '-'.repeat(2_900)],
    ['blank lines', '\n'.repeat(2_900)],
    ['many rows of separators', rows(40, (n) => `Chapter ${n}\n${'='.repeat(200)}`)],
    ['base64', Buffer.from(prose(60_000)).toString('base64')],
    ['base64 of zeros in between', `${prose(400)}${Buffer.alloc(2_000).toString('base64')}${prose(400)}`],
    ['the same block a few times', `${prose(800)}\n`.repeat(repeats)],
  ])('%s', (_name, text) => {
    expect(loops(text)).toBe(false);
  });

  test('base64 of anything, in lines or not', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 500, maxLength: 20_000 }), fc.boolean(), (bytes, inLines) => {
        const text = Buffer.from(bytes).toString('base64');
        expect(loops(inLines ? text.replace(/.{76}/g, '$&\n') : text)).toBe(false);
      }),
      { numRuns: 50 },
    );
  });

  test('any line repeated up to the bound, between lines that differ', () => {
    const line = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 100 });
    fc.assert(
      fc.property(fc.array(line, { minLength: 1, maxLength: 20 }), (lines) => {
        const text = lines.map(
          (each, n) => `${n}:\n${`${each}\n`.repeat(Math.floor(repeatedChars / (each.length + 1)))}`,
        );
        expect(loops(text.join(''))).toBe(false);
      }),
    );
  });
});

test('it fires at the same character however the stream is cut', () => {
  const text = prose(3_000) + 'again and again, '.repeat(400);
  const at = firesAt(text) ?? 0;
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 40 }), (sizes) => {
      const watch = new RepetitionWatch();
      let sent = 0;
      for (let n = 0; sent < text.length; n += 1) {
        const size = sizes[n % sizes.length] ?? 1;
        const looping = watch.feed(text.slice(sent, sent + size));
        sent += size;
        expect(looping).toBe(sent >= at);
      }
    }),
  );
});

// Trap: a detector that looks over its window at each chunk costs seconds a reply.
test('small chunks cost no more than large ones', () => {
  const text = prose(100_000);
  const watch = new RepetitionWatch();
  const before = process.cpuUsage();
  for (let round = 0; round < 40; round += 1) {
    for (let at = 0; at < text.length; at += 8) watch.feed(text.slice(at, at + 8));
    watch.feed(String(round));
  }
  // 4 M characters; CPU time, in microseconds.
  expect(process.cpuUsage(before).user).toBeLessThan(4_000_000);
});
