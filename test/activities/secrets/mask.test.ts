import { describe, expect, it } from 'vitest';
import type { ModelResult } from '../../../activities/model/port.ts';
import { createMasker, secretsOf } from '../../../activities/secrets/mask.ts';
import { sampleMasked } from '../../../activities/secrets/mask-result.ts';
import { NO_TOKENS } from '../../../workflows/core/sample-outcome.ts';

describe('what counts as a secret', () => {
  it.each([
    ['OPENAI_API_KEY', 'test-key-1', true],
    ['FORGE_TOKEN', 'test-token', true],
    ['CLIENT_SECRET', 'test-secret', true],
    ['PGPASSWORD', 'test-pass', true],
    ['NAMED_IN_CONFIG', 'test-named', true],
    // An everyday word as a mask would spoil every text.
    ['SHORT_TOKEN', 'main', false],
    ['PATH', '/usr/bin:/bin', false],
    ['MONKEY', 'bananas-all-day', false],
  ])('%s', (name, value, isSecret) => {
    expect(secretsOf({ [name]: value }, ['NAMED_IN_CONFIG']).includes(value)).toBe(isSecret);
  });

  it('the password of a URL, as it is written and as it is meant, but not the URL', () => {
    const found = secretsOf({ DATABASE_URL: 'postgres://pawl:p%40ssw0rd-1@db.internal:5432/pawl' });
    expect(found).toEqual(expect.arrayContaining(['p%40ssw0rd-1', 'p@ssw0rd-1']));
    expect(found.some((value) => value.includes('db.internal'))).toBe(false);
    // As a header says it.
    expect(found.some((value) => Buffer.from(value, 'base64').toString() === 'pawl:p@ssw0rd-1')).toBe(true);
  });

  // A reply that speaks of postgres says so, whatever the password of the database is.
  it.each([
    ['postgres://postgres:postgres@db.internal/pawl', 'postgres'],
    ['postgres://pawl:pw1@db.internal/pawl', 'pw1'],
    ['postgres://pawl:p%40@db.internal/pawl', 'p@'],
  ])('%s: an ordinary or short password only where it is told as one', (url, password) => {
    const { text } = createMasker(() => secretsOf({ DATABASE_URL: url }));
    const plain = `A database such as ${password} is one. ${password}:16 is an image.`;
    expect(text(plain)).toBe(plain);
    const [user] = url.slice('postgres://'.length).split(':');
    const basic = Buffer.from(`${user}:${password}`).toString('base64');
    for (const told of [
      url,
      `x:${password}@y`,
      `PGPASSWORD=${password}`,
      `{"password":"${password}"}`,
      `{"POSTGRES_PASSWORD": "${password}"}`,
      `password: "${password}"`,
      `PGPASSWORD: '${password}'`,
      `Basic ${basic}`,
    ]) {
      expect(text(`<${told}>`)).toContain('***');
      expect(text(`<${told}>`)).not.toMatch(new RegExp(`(:|=|["'])${password}|${basic}`));
    }
    expect(text(`psql ${url}`)).toBe('psql postgres://***db.internal/pawl');
  });

  it('a password by name that is a word, where its name stands; a longer or stranger one everywhere', () => {
    const masked = (environment: Record<string, string>, text: string) =>
      createMasker(() => secretsOf(environment)).text(text);
    expect(masked({ DB_PASSWORD: 'development' }, 'development: DB_PASSWORD=development')).toBe('development: ***');
    expect(masked({ DB_PASSWORD: 'dev3lopment' }, 'dev3lopment')).toBe('***');
    expect(masked({ DB_PASSWORD: 'correcthorsebattery' }, 'correcthorsebattery')).toBe('***');
    expect(secretsOf({ DB_PASSWORD: '', PGPASSWORD: ' ' })).toEqual([]);
    // A token of letters is none of the words that people talk of.
    expect(masked({ A_TOKEN: 'abcdefghij' }, 'abcdefghij')).toBe('***');
  });

  it('each line of a key file', () => {
    expect(secretsOf({ SIGN_KEY: 'first-line-of-it\nsecond-line-of-it\n' })).toContain('second-line-of-it');
  });
});

const SECRETS = ['abcdefgh', 'abcdefghijkl', 'ghijk.(ü)', 'xx'.repeat(5)];
const masker = createMasker(() => SECRETS);

describe('masking', () => {
  it('takes the longer of two that begin alike, and leaves everything else as it is', () => {
    expect(masker.text('a abcdefgh, abcdefghijkl; ghijk.(ü)! abcdefg')).toBe('a ***, ***; ***! abcdefg');
  });

  it('knows the spellings of JSON, URLs and base64', () => {
    const known = createMasker(() => secretsOf({ A_TOKEN: 'pa"ss/word+1' }));
    const texts = ['pa\\"ss/word+1', 'pa%22ss%2Fword%2B1', Buffer.from('pa"ss/word+1').toString('base64')];
    for (const text of texts) expect(known.text(`<${text}>`)).toMatch(/^<\*\*\*=*>$/);
  });

  // Output comes in pieces of any size, and a secret may lie over two of them.
  it('finds the same however the bytes are split', () => {
    const text = 'abcdefg abcdefgh|abcdefghij|abcdefghijkl ghijk.(ü) xxxxxxxxxxx abcdefghijk.(ü)end abcd';
    const bytes = Buffer.concat([Buffer.from([0xff, 0x00, 0xc3]), Buffer.from(text)]);
    const whole = masker.bytes(bytes);
    expect(whole.subarray(0, 3)).toEqual(bytes.subarray(0, 3));
    for (let first = 0; first <= bytes.length; first++) {
      for (const size of [1, 3, 7, 200]) {
        const stream = masker.stream();
        const parts = [stream.write(bytes.subarray(0, first))];
        for (let at = first; at < bytes.length; at += size) parts.push(stream.write(bytes.subarray(at, at + size)));
        expect(Buffer.concat([...parts, stream.end()]).toString('latin1')).toBe(whole.toString('latin1'));
      }
    }
    for (const secret of SECRETS) expect(whole.toString()).not.toContain(secret);
  });

  it('finds the same in a text that comes in pieces', () => {
    const text = 'abcdefg abcdefgh|abcdefghij|abcdefghijkl ghijk.(ü) xxxxxxxxxxx abcdefghijk.(ü)end abcd \u{1f600}';
    for (const size of [1, 2, 5, 11, 200]) {
      const stream = masker.textStream();
      let shown = '';
      for (let at = 0; at < text.length; at += size) shown += stream.write(text.slice(at, at + size));
      expect(shown + stream.end()).toBe(masker.text(text));
    }
  });

  it('asks for the secrets anew', () => {
    let known: string[] = [];
    const changing = createMasker(() => known);
    expect(changing.text('rotated-key')).toBe('rotated-key');
    known = ['rotated-key'];
    expect(changing.text('rotated-key')).toBe('***');
  });

  it('holds back no more than a beginning', () => {
    const stream = masker.stream();
    expect(stream.write(Buffer.from('plain abcd')).toString()).toBe('plain ');
    expect(stream.write(Buffer.from('!')).toString()).toBe('abcd!');
  });
});

// Trap: the same answer as a text is masked, and leaves the house by the same doors.
it('an answer that is handed in by a call is masked like one that is said; what runs stays as it is', async () => {
  const call = (name: string) => ({ id: name, name, arguments: '{"note":"is abcdefgh"}' });
  const result: ModelResult = {
    kind: 'reply',
    finish: 'tool_calls',
    usage: NO_TOKENS,
    text: '{"note":"is abcdefgh"}',
    reasoning: '',
    calls: [call('StructuredOutput'), call('write_file')],
    extra: {},
  };
  const port = { sample: () => Promise.resolve(result) };
  const request = {} as Parameters<typeof sampleMasked>[2];
  const masked = await sampleMasked(port, masker, request, { signal: new AbortController().signal, onDelta: () => {} });
  expect(masked).toEqual({
    ...result,
    text: '{"note":"is ***"}',
    calls: [{ ...call('StructuredOutput'), arguments: '{"note":"is ***"}' }, call('write_file')],
  });
});
