import { InvalidArgumentError } from 'commander';
import { z } from 'zod';
import type { CheckWish } from '../../activities/store/goal-plan.ts';

const Whole = z.strictObject({
  tool: z.string().min(1),
  arguments: z.record(z.string(), z.unknown()).optional(),
  expect: z.unknown().optional(),
  timeoutSeconds: z.number().optional(),
});

const HOW =
  'Write a tool and its arguments, as in \'ci_status {"branch": "main"}\', or all of it as JSON: {"tool": …, "arguments": …, "expect": …}.';

/** `name`, `name {arguments}`, or the whole check as a JSON object. */
export function toToolCheck(text: string): CheckWish {
  const [, name = '', rest = ''] = /^\s*([\w-]*)\s*([^]*)$/.exec(text) ?? [];
  const value = rest.trim() === '' ? {} : jsonOf(rest);
  const whole = Whole.safeParse(name === '' ? value : { tool: name, arguments: value });
  if (!whole.success) throw new InvalidArgumentError(HOW);
  return whole.data;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError(HOW);
  }
}
