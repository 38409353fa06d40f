import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from '../worker/setup-error.ts';

export const SAMPLE_TICKET = [
  'TICKET-1: slugify drops letters with accents.',
  'slugify("Crème brûlée") gives "cr-me-br-l-e"; it should give "creme-brulee".',
  'The test in test/slugify.test.js shows it. Fix src/slugify.js, run the tests with `node --test`, and commit the fix.',
].join('\n');

const FILES: Readonly<Record<string, string>> = {
  'package.json': '{ "name": "sample", "private": true, "type": "module", "scripts": { "test": "node --test" } }\n',
  'src/slugify.js': `export function slugify(title) {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
}
`,
  'test/slugify.test.js': `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { slugify } from '../src/slugify.js';

test('words are joined by dashes', () => {
  assert.equal(slugify('Hello, world!'), 'hello-world');
});

test('letters keep their base when they lose their accent', () => {
  assert.equal(slugify('Crème brûlée'), 'creme-brulee');
});
`,
};

/** Makes a small git repository with one failing test in a new folder under `root`; returns its path. */
export function makeSampleRepository(root: string): string {
  mkdirSync(root, { recursive: true });
  const folder = mkdtempSync(join(root, 'sample-'));
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  git(folder, 'init', '--quiet', '--initial-branch', 'main');
  git(folder, 'config', 'user.name', 'Pawl');
  git(folder, 'config', 'user.email', 'pawl@localhost');
  git(folder, 'add', '--all');
  git(folder, 'commit', '--quiet', '--message', 'A slugify that forgets accents');
  return folder;
}

function git(folder: string, ...args: string[]): void {
  try {
    execFileSync('git', args, { cwd: folder, stdio: 'pipe' });
  } catch (error) {
    const missing = (error as { code?: unknown }).code === 'ENOENT';
    throw new SetupError(
      missing ? 'The sample ticket needs git; install it.' : `git ${args[0]} failed in ${folder}; look there.`,
    );
  }
}
