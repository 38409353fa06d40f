// @ts-check
// Makes dist/: the compiled program as a package of its own, which the image runs without a loader.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const dist = join(root, 'dist');

rmSync(dist, { recursive: true, force: true });
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
if (status !== 0) process.exit(1);

// What the compiler does not take along: plain JavaScript, migrations, the page.
for (const folder of ['bin', 'activities', 'client', 'worker', 'testing']) {
  const source = join(root, folder);
  if (!existsSync(source)) continue;
  cpSync(source, join(dist, folder), { recursive: true, filter: (path) => !/\.tsx?$/.test(path) });
}

const { name, version, license, type, engines, bin, exports, dependencies } = JSON.parse(
  readFileSync(join(root, 'package.json'), 'utf8'),
);
const built = JSON.parse(JSON.stringify(exports).replaceAll('.ts"', '.js"'));
writeFileSync(
  join(dist, 'package.json'),
  `${JSON.stringify({ name, version, license, type, private: true, engines, bin, exports: built, dependencies }, null, 2)}\n`,
);
