import { posix } from 'node:path';

/**
 * Patterns of permission rules. `*` stands for any characters, none too; case counts.
 * Each kind of subject is matched twice: narrowly for `allow` (whatever can't be proved does not fit) and broadly
 * for `deny` and `ask` (other spellings of the same thing fit too). Everything here takes linear time: the subject
 * is written by a model.
 */
export type Strictness = 'narrow' | 'broad';

/** What separates, nests or redirects commands in a shell, and what expands to something else. */
const SHELL_META = /[;|&`$()<>\n\r\0]/;
const SHELL_META_OR_QUOTE = /[;|&`$()<>\n\r\0'"\\]/;
const SHELL_PARTS = /[;|&`$(){}<>\n\r]+/;
const WORD_EDGE = /[\s;|&`$(){}<>/=!'"\\]/;

export function fits(pattern: string, text: string): boolean {
  return gapsOf(pattern, text) !== null;
}

/** The pieces that the stars stand for, leftmost match; null if the pattern does not fit. */
function gapsOf(pattern: string, text: string): string[] | null {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return pattern === text ? [] : null;
  if (!text.startsWith(first)) return null;
  const gaps: string[] = [];
  let at = first.length;
  for (const literal of rest) {
    const found = text.indexOf(literal, at);
    if (found === -1) return null;
    gaps.push(text.slice(at, found));
    at = found + literal.length;
  }
  const end = text.length - last.length;
  if (end < at || !text.endsWith(last)) return null;
  return [...gaps, text.slice(at, end)];
}

/**
 * Narrow: the whole command, and a star never stands for a metacharacter, so `git status*` does not allow
 * `git status; rm -rf .`. Broad: at any word of the command or of a part of it, however it is quoted.
 */
export function commandFits(pattern: string, command: string, how: Strictness): boolean {
  if (how === 'broad') return spellingsOf(command).some((text) => fitsAtWord(squeeze(pattern), text));
  // Where the pattern itself quotes, a quote inside a star would move what is quoted.
  const banned = SHELL_META_OR_QUOTE.test(pattern) ? SHELL_META_OR_QUOTE : SHELL_META;
  return gapsOf(pattern, command)?.every((gap) => !banned.test(gap)) ?? false;
}

function spellingsOf(command: string): string[] {
  const joined = command.replaceAll('\\\n', '');
  const bare = joined.replace(/['"\\]/g, '');
  return [joined, bare].flatMap((text) => [text, ...text.split(SHELL_PARTS)]).map(squeeze);
}

function squeeze(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function fitsAtWord(pattern: string, text: string): boolean {
  const star = pattern.indexOf('*');
  if (star === 0) return fits(pattern, text);
  const first = star === -1 ? pattern : pattern.slice(0, star);
  for (let at = text.indexOf(first); at !== -1; at = text.indexOf(first, at + 1)) {
    if (at > 0 && !WORD_EDGE.test(text[at - 1] ?? '')) continue;
    // With a star the leftmost place leaves the most room; without one it must reach to the end.
    if (star !== -1) return fits(pattern, text.slice(at));
    if (at + first.length === text.length) return true;
  }
  return false;
}

/**
 * Paths are compared by segments, `..` resolved: `*` stays in a segment, `**` is any number of them. A pattern that
 * ends without a star covers what lies below it (`secrets` covers `secrets/key`, never `secrets-old`).
 * Broad: a pattern without a slash is found at every depth. `tree`: the call reads everything below the path, so
 * a broad pattern fits as soon as something below could fit it.
 */
export function pathFits(pattern: string, path: string, how: Strictness, tree: boolean): boolean {
  const wanted = segmentsOf(pattern);
  const given = segmentsOf(path);
  if (how === 'narrow' && rootOf(wanted) !== rootOf(given)) return false;
  if (!(wanted[wanted.length - 1] ?? '').includes('*')) wanted.push('**');
  if (how === 'broad' && wanted[0] !== '**' && !posix.normalize(pattern).replace(/\/$/, '').includes('/')) {
    wanted.unshift('**');
  }
  const reached = reachedStates(wanted, given);
  return reached.has(wanted.length) || (tree && how === 'broad' && reached.size > 0);
}

/** No segment for the workspace itself; an absolute path begins with an empty one. */
function segmentsOf(path: string): string[] {
  const clean = posix.normalize(path).replace(/\/$/, '');
  return clean === '.' ? [] : clean.split('/');
}

/** Where a path starts from: the workspace, above it, or the root. A narrow star never leads out of its own. */
function rootOf(segments: readonly string[]): 'inside' | 'above' | 'absolute' {
  return segments[0] === '' ? 'absolute' : segments[0] === '..' ? 'above' : 'inside';
}

/** How far into the pattern one can be when the path is used up; empty: it can't fit any more. */
function reachedStates(pattern: readonly string[], path: readonly string[]): ReadonlySet<number> {
  let states = withSkips(pattern, [0]);
  for (const segment of path) {
    const next: number[] = [];
    for (const state of states) {
      const wanted = pattern[state];
      if (wanted === '**') next.push(state);
      else if (wanted !== undefined && fits(wanted, segment)) next.push(state + 1);
    }
    states = withSkips(pattern, next);
  }
  return states;
}

function withSkips(pattern: readonly string[], states: readonly number[]): ReadonlySet<number> {
  const all = new Set(states);
  // A set is walked in the order of insertion, what is added on the way too.
  for (const state of all) if (pattern[state] === '**') all.add(state + 1);
  return all;
}

/**
 * Narrow: scheme and host as parsed, so `https://api.example.com*` is that host only, whatever the path; no names
 * or passwords in the URL. Broad: also plainly, as written or as parsed.
 */
export function urlFits(pattern: string, text: string, how: Strictness): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (how === 'broad' && [text, url?.href, url && decoded(url.href)].some((form) => form && fits(pattern, form))) {
    return true;
  }
  const [, origin, path] = /^([a-z*][a-z0-9+.*-]*:\/\/[^/?#]*)(.*)$/is.exec(pattern) ?? [];
  if (url === null || origin === undefined || path === undefined) return false;
  if (how === 'narrow' && (url.username !== '' || url.password !== '')) return false;
  const host = origin.endsWith('*') && !origin.endsWith('//*') ? origin.slice(0, -1) : origin;
  return fits(host.toLowerCase(), url.origin) && (path === '' || fits(path, url.pathname + url.search));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
