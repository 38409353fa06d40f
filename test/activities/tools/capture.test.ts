import { createHash, randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Capture, show } from '../../../activities/tools/capture.ts';
import { firstChars, fitText, lastChars } from '../../../activities/tools/text.ts';
import { expectStorable } from './tool-context.ts';

const CHARS = 1_000;
const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

function captured(bytes: Buffer, chunk: number, keepBytes?: number) {
  const capture = new Capture(CHARS, keepBytes);
  for (let at = 0; at < bytes.length; at += chunk) capture.write(bytes.subarray(at, at + chunk));
  return capture.finish();
}

describe.each([1, 7, 65_536])('in chunks of %i bytes', (chunk) => {
  it('a short text is given as it is', () => {
    expect(show(captured(Buffer.from('héllo 🎫\n'), chunk), CHARS)).toEqual({ text: 'héllo 🎫\n' });
  });

  it.each([
    ['NUL', Buffer.from('a\0b')],
    ['random bytes', randomBytes(20_000)],
    ['a picture', Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), randomBytes(200)])],
  ])('%s is described, not pasted', (_, bytes) => {
    const { text, output } = show(captured(bytes, chunk), CHARS);
    expect(text).toMatch(
      new RegExp(`^\\[Binary output, not shown. The whole output is ${bytes.length} bytes, sha256 ${hash(bytes)}`),
    );
    expect(output?.equals(bytes)).toBe(true);
    expectStorable(text);
  });

  it.each([
    ['one byte that is not UTF-8', Buffer.from('caf\xe9 au lait', 'latin1'), 'caf\ufffd au lait'],
    ['a character cut at the end', Buffer.from([0x61, 0xf0, 0x9f, 0x8e]), 'a\ufffd'],
    ['half a surrogate in CESU-8', Buffer.from([0x61, 0xed, 0xa0, 0x80]), 'a\ufffd\ufffd\ufffd'],
  ])('%s is shown and said', (_, bytes, start) => {
    const { text, output } = show(captured(bytes, chunk), CHARS);
    expect(text.startsWith(`${start}\n[`)).toBe(true);
    expect(text).toContain(hash(bytes));
    expect(output?.equals(bytes)).toBe(true);
  });

  it.each([
    ['x', 5_000],
    ['🎫', 5_000],
    ['é', 5_000],
    ['한', 5_000],
  ])('a long line of %s is cut on a character border', (character, times) => {
    for (const lead of ['', 'a', 'ab', 'abc']) {
      const bytes = Buffer.from(lead + character.repeat(times));
      const { text } = show(captured(bytes, chunk), CHARS);
      expect(text.length).toBeLessThanOrEqual(CHARS);
      expect(text.length).toBeGreaterThan(CHARS / 2);
      expect(text).not.toContain('\ufffd');
      expect(text.startsWith(lead + character)).toBe(true);
      expect(text.endsWith(character)).toBe(true);
      expectStorable(text);
    }
  });

  it('keeps head and tail, and bytes only up to the bound', () => {
    const bytes = Buffer.from(Array.from({ length: 20_000 }, (_, i) => `line ${i}\n`).join(''));
    const result = captured(bytes, chunk, 10_000);
    expect(result.kept.equals(bytes.subarray(0, 10_000))).toBe(true);
    expect(result.tail.equals(bytes.subarray(bytes.length - 3 * CHARS))).toBe(true);
    const { text } = show(result, CHARS);
    expect(text.startsWith('line 0\nline 1\n')).toBe(true);
    expect(text.endsWith('line 19998\nline 19999\n')).toBe(true);
    expect(text).toContain(`${bytes.length} bytes, sha256 ${hash(bytes)}. Only the first 10000 bytes were kept.`);
  });
});

it('control sequences of terminals are taken out, and the raw bytes kept', () => {
  const bytes = Buffer.from('\u001b[31mred\u001b[0m \u001b]0;title\u0007done');
  const { text, output } = show(captured(bytes, 99), CHARS);
  expect(text).toBe('red done');
  expect(output?.equals(bytes)).toBe(true);
});

it('a limit never leaves half a character', () => {
  const text = `${'x'.repeat(9)}🎫`;
  expect(firstChars(text, 10)).toBe('x'.repeat(9));
  expect(firstChars(text, 11)).toBe(text);
  expect(lastChars(`🎫${'x'.repeat(9)}`, 10)).toBe('x'.repeat(9));
  for (let chars = 0; chars < 400; chars++) {
    const fitted = fitText('🎫'.repeat(500), chars);
    expect(fitted.length).toBeLessThanOrEqual(chars);
    expectStorable(fitted);
  }
});

it('what can not be stored gets a stand-in', () => {
  expect(fitText('a\0b\ud83cc\udfab🎫', 99)).toBe('a\ufffdb\ufffdc\ufffd🎫');
});
