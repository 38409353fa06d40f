import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { defineTool, type Tool, type Undo } from '../../activities/tools/define-tool.ts';

/** Files of the workspace: what happened, one line each time, and what an undo waits for, after it has acted. */
export const DONE = 'done.txt';
export const UNDONE = 'undone.txt';
export const HOLD_UNDO = 'hold-undo';

const input = z.strictObject({});

/** Acts at once, and then takes until it is cancelled. */
function undoable(name: string, effect: NonNullable<Undo<object>['effect']>): Tool {
  return defineTool({
    name,
    description: 'Acts.',
    input,
    onUnknown: 'tell',
    async run(_args, { workspace, signal }) {
      appendFileSync(`${workspace}/${DONE}`, 'done\n');
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return { isError: true, text: 'stopped', aborted: 'in_the_middle' };
    },
    reconcile: (_args, { workspace }) =>
      Promise.resolve(
        existsSync(`${workspace}/${DONE}`)
          ? { kind: 'done', result: { isError: false, text: 'found' } }
          : { kind: 'absent' },
      ),
    undo: {
      effect,
      async run(_args, { workspace }) {
        appendFileSync(`${workspace}/${UNDONE}`, 'undone\n');
        while (existsSync(`${workspace}/${HOLD_UNDO}`)) await sleep(20);
      },
    },
  }) as Tool;
}

/** Taking them back must not happen twice, or may. */
export const undoableTools = [undoable('undo_once', 'once'), undoable('undo_again', 'idempotent')] as const;
