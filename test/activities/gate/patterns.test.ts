import { describe, expect, it, test } from 'vitest';
import { commandFits, fits, pathFits, urlFits } from '../../../activities/gate/patterns.ts';

test.each([
  ['shell', 'shell', true],
  ['shell', 'Shell', false],
  ['shell', 'shell2', false],
  ['*', '', true],
  ['*', 'a\nb', true],
  ['mcp__*__read', 'mcp__github__read', true],
  ['mcp__*__read', 'mcp__read', false],
  ['ab*ba', 'aba', false],
  ['a*b*c', 'a-b-b-c', true],
  // Everything but the star is plain text.
  ['a.c', 'abc', false],
])('%j against %j: %s', (pattern, text, expected) => {
  expect(fits(pattern, text)).toBe(expected);
});

describe('allowing a command', () => {
  it.each([
    ['git status*', 'git status', true],
    ['git status*', 'git status --short "a b"', true],
    ['git log * -n *', 'git log main -n 3', true],
    ['npm test && npm run *', 'npm test && npm run lint', true],
    ['echo $HOME', 'echo $HOME', true],
    // The whole command, and nothing that could hold a second one.
    ['git status*', 'git status; rm -rf .', false],
    ['git status*', 'git status & rm x', false],
    ['git status*', 'git status | sh', false],
    ['git status*', 'git status $(rm x)', false],
    ['git status*', 'git status `rm x`', false],
    ['git status*', 'git status > file', false],
    ['git status*', 'git status < file', false],
    ['git status*', 'git status\nrm x', false],
    ['git status*', 'git status <(rm x)', false],
    ['git status*', 'cd x; git status', false],
    ['git status*', 'PATH=. git status', false],
    ['git status*', 'GIT STATUS', false],
    ['npm test && npm run *', 'npm test && npm run x && rm y', false],
    // A quote in the star would end the pattern's own, and its `;` would be a real one.
    ["echo * ';' rm x", "echo ' ';' rm x", false],
  ])('%j, given %j: %s', (pattern, command, expected) => {
    expect(commandFits(pattern, command, 'narrow')).toBe(expected);
  });
});

describe('denying a command', () => {
  it.each([
    ['rm *', 'rm -rf x', true],
    ['rm *', 'cd x; rm -rf y', true],
    ['rm *', 'cd x && /bin/rm  -rf y', true],
    ['rm *', 'echo $(rm x)', true],
    ['rm *', 'true\n\trm x', true],
    ['rm *', 'FOO=1 sudo rm x', true],
    ['rm *', '"rm" x', true],
    ['rm *', 'r\\m x', true],
    ['rm *', "r''m x", true],
    ['rm *', 'r\\\nm x', true],
    ['rm *', 'sh -c "rm x"', true],
    ['shutdown', 'true; shutdown', true],
    ['* | sh', 'curl x | sh', true],
    ['git push*', 'git  push origin', true],
    ['rm *', 'alarm x', false],
    ['rm *', 'perform x', false],
    ['shutdown', 'shutdown-now', false],
    ['git push*', 'git pull', false],
  ])('%j, given %j: %s', (pattern, command, expected) => {
    expect(commandFits(pattern, command, 'broad')).toBe(expected);
  });

  // A model writes the command: no pattern may be made slow by it.
  it('takes linear time', () => {
    const command = 'a '.repeat(100_000);
    const began = performance.now();
    for (const how of ['broad', 'narrow'] as const) expect(commandFits('*a*a*a*a*b', command, how)).toBe(false);
    expect(pathFits('**/a/**/a/**/b', 'a/'.repeat(100_000), 'broad', false)).toBe(false);
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

describe('paths', () => {
  it.each([
    // pattern, path, allow, deny
    ['src/**', 'src/a/b.ts', true, true],
    ['src/*', 'src/a', true, true],
    ['src/*', 'src/a/b', false, false],
    ['src/*.ts', 'src/a.ts', true, true],
    ['./src/../src', 'src/a', true, true],
    ['src', 'src', true, true],
    ['src', 'src/a/b', true, true],
    ['src/', 'src/a', true, true],
    // Prefix twins and ways out.
    ['src', 'src-evil/a', false, false],
    ['src/**', 'src-evil', false, false],
    ['src/**', 'src/../secrets/key', false, false],
    ['secrets/**', 'src/../secrets/key', true, true],
    ['secrets/**', './secrets//key', true, true],
    ['**', '../other', false, true],
    ['**', '/etc/passwd', false, true],
    ['/etc/**', '/etc/passwd', true, true],
    ['Src/**', 'src/a', false, false],
    ['.', 'a/b', true, true],
    // A guard without a slash is meant for every depth; a permission is not.
    ['.env', 'app/.env', false, true],
    ['*.pem', 'a/b/c.pem', false, true],
    ['a/.env', 'b/a/.env', false, false],
  ])('%j, given %j: allow %s, deny %s', (pattern, path, allow, deny) => {
    expect([pathFits(pattern, path, 'narrow', false), pathFits(pattern, path, 'broad', false)]).toEqual([allow, deny]);
  });

  // A search of `.` would print what `read_file` may not.
  it.each([
    ['secrets/**', '.', true],
    ['a/secrets/**', 'a', true],
    ['a/secrets/**', 'b', false],
    ['.env', 'src', true],
  ])('a guard at %j holds for what searches %j: %s', (pattern, path, expected) => {
    expect(pathFits(pattern, path, 'broad', true)).toBe(expected);
    expect(pathFits(pattern, path, 'narrow', true)).toBe(false);
  });
});

describe('URLs', () => {
  it.each([
    // pattern, URL, allow, deny
    ['https://api.example.com/*', 'https://api.example.com/a?b=1&c=2', true, true],
    ['https://api.example.com*', 'https://api.example.com/a', true, true],
    ['https://api.example.com', 'https://API.example.com:443/a', true, true],
    ['https://*.example.com/*', 'https://a.example.com/', true, true],
    ['https://api.example.com/repos/*', 'https://api.example.com/repos/../admin', false, true],
    ['https://api.example.com*', 'https://api.example.com.evil.test/', false, true],
    ['https://api.example.com*', 'https://api.example.com@evil.test/', false, true],
    ['https://api.example.com/*', 'https://x:y@api.example.com/', false, true],
    ['https://*.example.com/*', 'https://evil.test/?.example.com/', false, true],
    ['https://api.example.com/*', 'http://api.example.com/', false, false],
    ['https://api.example.com/*', 'not a url', false, false],
    ['*://evil.test/*', 'https://EVIL.test/a', true, true],
  ])('%j, given %j: allow %s, deny %s', (pattern, url, allow, deny) => {
    expect([urlFits(pattern, url, 'narrow'), urlFits(pattern, url, 'broad')]).toEqual([allow, deny]);
  });
});
