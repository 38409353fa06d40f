import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { defineTool, type Tool, type ToolContext, type ToolResult } from '../../activities/tools/define-tool.ts';

const input = z.strictObject({});

/** Says by a file of the workspace that it is there, and waits for another one, or for its signal. */
export async function untilTold({ workspace, signal }: Pick<ToolContext, 'workspace' | 'signal'>, ready: string) {
  writeFileSync(join(workspace, ready), '');
  while (!existsSync(join(workspace, 'go')) && !signal.aborted) await sleep(20);
}

async function run(context: ToolContext, ready: string): Promise<ToolResult> {
  await untilTold(context, ready);
  if (context.signal.aborted) return { isError: true, text: 'stopped', aborted: 'without_effect' };
  return { isError: false, text: `${ready} is over` };
}

const reader = { description: 'Reads until it is told.', input, effect: 'none' } as const;
const locks = () => [{ resource: 'the thing', mode: 'write' }] as const;

/** Tools that take as long as the test wants: the file `go` lets all of a workspace go on. */
export const SLOW_TOOLS = [
  defineTool({ ...reader, name: 'slow_read', run: (_, context) => run(context, 'reading') }),
  defineTool({ ...reader, name: 'quick_read', quick: true, run: (_, context) => run(context, 'reading_quickly') }),
  defineTool({ ...reader, name: 'read_after', locks, run: (_, context) => run(context, 'reading_after') }),
  defineTool({
    name: 'slow_act',
    description: 'Acts until it is told.',
    input,
    effect: 'idempotent',
    locks,
    run: (_, context) => run(context, 'acting'),
  }),
  defineTool({
    name: 'deaf_act',
    description: 'Acts until it is told, and heeds no signal.',
    input,
    effect: 'once',
    onUnknown: 'tell',
    async run(_, { workspace }) {
      await untilTold({ workspace, signal: new AbortController().signal }, 'acting');
      return { isError: false, text: 'acting is over' };
    },
  }),
  defineTool({
    name: 'lost_act',
    description: 'Acts, and its answer is lost.',
    input,
    effect: 'once',
    onUnknown: 'tell',
    run: () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' })),
    async reconcile(_, context) {
      await untilTold(context, 'asking');
      return { kind: 'done', result: { isError: false, text: 'It had happened.' } };
    },
  }),
] as Tool[];
