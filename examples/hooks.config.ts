// One hook of each kind: copy what you need into your pawl.config.ts.
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { defineAgent, defineConfig, type HookFunction } from '../pawl.ts';

/** Asked before a call: may deny it. */
const noForcePush: HookFunction = ({ args }) =>
  /\bpush\b.*(--force|-f)\b/.test(commandOf(args)) ? { deny: 'Force pushes are done by people.' } : null;

/** Asked before a call: may change its arguments, which are then validated again. */
const cleanInstall: HookFunction = ({ args }) =>
  commandOf(args) === 'npm install' ? { rewrite: { command: 'npm ci' } } : null;

/** Asked before a turn ends: may end it ABORTED at once. */
const stopFile: HookFunction = ({ workspace }) =>
  existsSync(join(workspace, 'STOP')) ? { continue: false, stopReason: 'Somebody put a STOP file there.' } : null;

/** Told of something that has happened: what it answers is not looked at. */
const note: HookFunction = ({ id, event, session, turn, detail }) =>
  appendFileSync(process.env.HOOK_NOTES ?? 'notes.jsonl', `${JSON.stringify({ id, event, session, turn, detail })}\n`);

function commandOf(args: unknown): string {
  const command = (args as { command?: unknown } | undefined)?.command;
  return typeof command === 'string' ? command : '';
}

export default defineConfig({
  agents: [
    defineAgent({ name: 'engineer', model: 'gpt-5-mini', instructions: 'You work on a ticket.', tools: ['shell'] }),
  ],
  hooks: [
    { event: 'PreToolUse', tool: 'shell', run: noForcePush },
    { event: 'PreToolUse', tool: 'shell', run: cleanInstall },
    // Commands run in the folder of this file and get their input as JSON on standard input.
    { event: 'UserPromptSubmit', run: { command: 'node', args: ['hooks/no-private-keys.js'] } },
    { event: 'StopGate', run: { command: 'node', args: ['hooks/all-committed.js'], timeLimitMs: 60_000 } },
    { event: 'StopGate', run: stopFile },
    { event: 'PostToolUseFailure', run: note },
    { event: 'PermissionDenied', run: note },
    { event: 'Stop', run: note },
    { event: 'StopFailure', run: note },
    { event: 'StopCancelled', run: note },
    { event: 'SessionEnd', run: { command: 'sh', args: ['hooks/say-goodbye.sh'] } },
  ],
});
