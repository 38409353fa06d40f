// @ts-check
// Runs before `npm start`, `npm test` and in CI: on a fresh clone it installs the dependencies, else it does nothing.
// Plain JavaScript without dependencies, since nothing is installed yet.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** @typedef {{ packages: Record<string, { version?: string, optional?: boolean, devOptional?: boolean }> }} Lock */

requireNode(20, 19);
if (!isInstalled()) install();

/** @param {number} major @param {number} minor */
function requireNode(major, minor) {
  const [haveMajor = 0, haveMinor = 0] = process.versions.node.split('.').map(Number);
  if (haveMajor > major || (haveMajor === major && haveMinor >= minor)) return;
  fail(`Pawl needs Node ${major}.${minor} or later, and this is Node ${process.versions.node}.`);
}

/** Compares with npm's own record of what it installed; packages for other platforms may lack. */
function isInstalled() {
  const wanted = readLock(join(root, 'package-lock.json'));
  if (!wanted) fail('package-lock.json is missing or broken: this is not a whole copy of Pawl.');
  const installed = readLock(join(root, 'node_modules', '.package-lock.json'));
  if (!installed) return false;
  return Object.entries(wanted.packages).every(
    ([path, { version, optional, devOptional }]) =>
      path === '' || optional || devOptional || installed.packages[path]?.version === version,
  );
}

/** @param {string} file @returns {Lock | null} */
function readLock(file) {
  try {
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
  } catch {
    return null;
  }
}

function install() {
  console.error('Installing dependencies; this takes a minute the first time …');
  const began = Date.now();
  const options = ['ci', '--include=dev', '--no-audit', '--no-fund'];
  const npm = process.env.npm_execpath;
  const { status, error } = npm
    ? spawnSync(process.execPath, [npm, ...options], { cwd: root, stdio: ['ignore', 2, 2] })
    : spawnSync('npm', options, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  if (error) fail(`npm could not be started (${error.message}): install npm, which comes with Node.`);
  if (status !== 0)
    fail('The dependencies could not be installed: npm says above why; then run the same command again.');
  console.error(`Dependencies installed in ${Math.round((Date.now() - began) / 1000)} s.`);
}

/** @param {string} sentence @returns {never} */
function fail(sentence) {
  console.error(sentence);
  process.exit(1);
}
