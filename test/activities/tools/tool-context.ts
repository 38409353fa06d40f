import { randomUUID } from 'node:crypto';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, vi } from 'vitest';
import { supervise } from '../../../activities/process/supervise.ts';
import type { Tool, ToolContext, ToolResult } from '../../../activities/tools/define-tool.ts';
import { parseArguments } from '../../../activities/tools/parse-arguments.ts';

const TMP = tmpdir();

/** A fresh folder that is gone after the test. `ws` lies in it, so that there is something outside. */
export function freshWorkspace(): { outside: string; workspace: string } {
  const outside = realpathSync(mkdtempSync(join(TMP, 'pawl-tools-')));
  onTestFinished(() => rmSync(outside, { recursive: true, force: true }));
  // Home folders of tools go there too.
  vi.stubEnv('TMPDIR', outside);
  return { outside, workspace: join(outside, 'ws') };
}

export function contextFor(workspace: string, changes: Partial<ToolContext> = {}): ToolContext {
  return {
    workspace,
    signal: new AbortController().signal,
    idempotencyKey: randomUUID(),
    details: null,
    spawn: supervise,
    resultChars: 30_000,
    ...changes,
  };
}

/** Calls a tool as the runner does: arguments as text, `prepare` before `run`. */
export async function call(tool: Tool, args: object, context: ToolContext): Promise<ToolResult> {
  const parsed = parseArguments(tool, JSON.stringify(args));
  if (!parsed.ok) throw new Error(parsed.text);
  const details = await tool.prepare?.(parsed.args, context);
  const result = await tool.run(parsed.args, { ...context, details });
  expectStorable(result.text);
  expect(result.text.length).toBeLessThanOrEqual(context.resultChars);
  expect((result.note ?? '').length).toBeLessThanOrEqual(200);
  return result;
}

export function expectStorable(text: string): void {
  expect(text.includes('\0')).toBe(false);
  expect(/\p{Surrogate}/u.test(text)).toBe(false);
}

export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + 10_000; Date.now() < end; await sleep(10)) if (await holds()) return;
  throw new Error(`not within 10 s: ${what}`);
}
