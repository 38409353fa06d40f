#!/usr/bin/env node
// @ts-check
// Runs the compiled program if there is one (beside this file in the image, else in dist/), or the sources through tsx.
import { existsSync } from 'node:fs';

const compiled = ['../client/cli/main.js', '../dist/client/cli/main.js']
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url));

if (compiled) {
  await import(compiled.href);
} else {
  const loader = await import('tsx/esm/api').catch(() => null);
  if (!loader) {
    console.error('The dependencies are missing: run `npm ci` in the folder of Pawl.');
    process.exit(1);
  }
  loader.register();
  await import(new URL('../client/cli/main.ts', import.meta.url).href);
}
