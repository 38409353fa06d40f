import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { expect, test } from 'vitest';

const quiet = new DefaultLogger('ERROR', () => {});

/** Packages that must stay out of a workflow: they act on the world, or cost every workflow its start (zod: 8 ms). */
const FORBIDDEN = /node_modules\/(zod|drizzle-orm|pg|openai|hono|pino|@temporalio\/(worker|client|activity))\//;

test('the workflows bundle: nothing in there needs a Node built-in or a package that acts', async () => {
  const workflowsPath = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));
  const { code } = await bundleWorkflowCode({ workflowsPath, logger: quiet });
  expect(FORBIDDEN.exec(code)?.[0]).toBeUndefined();
});

// Guards the guard: were the bundler to let built-ins through one day, the test above would prove nothing.
test('a workflow that imports a Node built-in does not bundle', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-bundle-'));
  try {
    const workflowsPath = join(folder, 'index.ts');
    await writeFile(workflowsPath, "import { readFileSync } from 'node:fs';\nexport const workflow = readFileSync;\n");
    const said: string[] = [];
    const logger = new DefaultLogger('ERROR', ({ message }) => said.push(message));
    await expect(bundleWorkflowCode({ workflowsPath, logger })).rejects.toThrow();
    expect(said.join('\n')).toContain('node:fs');
  } finally {
    await rm(folder, { recursive: true });
  }
});
