import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const CORE = fileURLToPath(new URL('../../workflows/core/', import.meta.url));
const IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)['"]([^'"]+)['"]/g;
const files = readdirSync(CORE, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));

// Types count too: they would tie the vocabulary of the house to an engine.
test.each(files)('%s imports nothing but the core: no Temporal, no Node, no clock', (name) => {
  const path = join(CORE, name);
  const text = readFileSync(path, 'utf8');
  const outside = [...text.matchAll(IMPORT)]
    .map(([, specifier]) => specifier ?? '')
    .filter((specifier) => !specifier.startsWith('.') || !resolve(dirname(path), specifier).startsWith(CORE));
  expect(outside).toEqual([]);
  expect(text).not.toMatch(/\bDate\b|Math\.random|\bprocess\.|\bglobalThis\b|setTimeout/);
});
