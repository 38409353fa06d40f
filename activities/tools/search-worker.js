// @ts-check
// Searches text files below one folder, in a process of its own: a pattern from a model may take for ever,
// and only a process can be stopped then. Plain JavaScript, so that it starts without a loader.
//
// argv[2]: JSON { root, base, pattern, flags, include?, mostMatches, lineChars }
// Output: one line a match, `path:line:text`, then one line in brackets that sums up.
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { basename, join, relative } from 'node:path';

const MOST_FILE_BYTES = 20 * 1024 * 1024;
const SNIFF_BYTES = 8_192;
const CLOSED = new Set(['.git', 'node_modules']);

const spec = JSON.parse(process.argv[2] ?? '{}');
const pattern = new RegExp(spec.pattern, spec.flags);
const include = spec.include ? globToPattern(spec.include) : null;
const count = { matches: 0, files: 0, skipped: 0 };

/** @param {string} path */
function search(path) {
  if (count.matches >= spec.mostMatches) return;
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory()) {
    for (const name of readNames(path)) if (!CLOSED.has(name)) search(join(path, name));
  } else if (found?.isFile() && isIncluded(path)) {
    searchFile(path);
  }
}

/** @param {string} path */
function searchFile(path) {
  const text = readText(path);
  if (text === null) {
    count.skipped++;
    return;
  }
  count.files++;
  const shown = relative(spec.base, path);
  for (const [i, line] of text.split('\n').entries()) {
    const match = pattern.exec(line);
    if (match === null) continue;
    print(`${shown}:${i + 1}:${around(line, match.index)}`);
    if (++count.matches >= spec.mostMatches) return;
  }
}

/** @param {string} path @returns {string | null} null for what is no text, too large or not readable */
function readText(path) {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const found = fstatSync(file);
      if (!found.isFile() || found.size > MOST_FILE_BYTES) return null;
      const bytes = readFileSync(file);
      return bytes.subarray(0, SNIFF_BYTES).includes(0) ? null : bytes.toString('utf8');
    } finally {
      closeSync(file);
    }
  } catch {
    return null;
  }
}

/** @param {string} line @param {number} at */
function around(line, at) {
  const text = line.replace(/\r$/, '');
  if (text.length <= spec.lineChars) return text;
  const start = Math.max(0, Math.min(at - 40, text.length - spec.lineChars));
  return `${start > 0 ? '...' : ''}${text.slice(start, start + spec.lineChars)}...`;
}

/** @param {string} path */
function readNames(path) {
  try {
    return readdirSync(path).sort();
  } catch {
    count.skipped++;
    return [];
  }
}

/** @param {string} path */
function isIncluded(path) {
  return include === null || include.test(spec.include.includes('/') ? relative(spec.base, path) : basename(path));
}

/** `*`, `**`, `?` and `{a,b}`. @param {string} glob */
function globToPattern(glob) {
  const source = glob.replace(/\*\*\/?|[*?{},]|[^*?{},]+/g, (part) => {
    if (part.startsWith('**')) return '.*';
    return (
      { '*': '[^/]*', '?': '[^/]', '{': '(?:', '}': ')', ',': '|' }[part] ?? part.replace(/[.+^$()|[\]\\]/g, '\\$&')
    );
  });
  return new RegExp(`^${source}$`);
}

/** @param {string} line */
function print(line) {
  writeSync(1, `${line}\n`);
}

search(spec.root);
const most = count.matches >= spec.mostMatches ? ', stopped there; narrow the search for the rest' : '';
print(
  `[${count.matches} matching lines in ${count.files} files${most}; ${count.skipped} files not searched: binary, too large or not readable]`,
);
