import { z } from 'zod';
import { type Hook, HOOK_EVENTS, type HookFunction, TOOL_EVENTS } from '../../activities/gate/hook-types.ts';
import {
  DEFAULT_PERMISSIONS,
  type PermissionMode,
  type PermissionRule,
  type Permissions,
} from '../../activities/gate/permissions.ts';
import { isAsking } from '../../activities/gate/run-hook.ts';
import { POLICY } from '../../workflows/core/policy.ts';

/** Permissions of an agent, as a config file writes them. An agent without any runs its tools unasked (`bypass`). */
export interface PermissionsDefinition {
  readonly mode: PermissionMode;
  readonly rules?: readonly PermissionRule[];
  /** Whether somebody can be asked although nobody watches. False if left out: what would ask is denied. */
  readonly approvers?: boolean;
  /** How long an approval waits, ms; 24 h if left out. */
  readonly expiryMs?: number;
  /** What an approval that nobody answered becomes: a denied call (if left out), or the end BLOCKED of the turn. */
  readonly onExpiry?: 'deny' | 'block';
}

export type HookDefinition = Hook;

/** For the field `permissions` of an agent. */
export const permissionsShape = z.strictObject({
  mode: z.enum(['default', 'acceptEdits', 'auto', 'dontAsk', 'bypass']),
  rules: z
    .array(
      z.strictObject({
        action: z.enum(['allow', 'ask', 'deny']),
        tool: z.string().min(1),
        argument: z.string().min(1).optional(),
      }),
    )
    .optional(),
  approvers: z.boolean().optional(),
  expiryMs: z.number().int().positive().optional(),
  onExpiry: z.enum(['deny', 'block']).optional(),
});

const command = z.strictObject({
  command: z.string().min(1),
  args: z.array(z.string()).optional(),
  timeLimitMs: z.number().int().positive().max(POLICY.hooks.stopGateLimitMs).optional(),
});

/** For the field `hooks` of the config: an array of these. */
export const hookShape = z
  .strictObject({
    event: z.enum(HOOK_EVENTS),
    tool: z.string().min(1).optional(),
    run: z.union([z.custom<HookFunction>((run) => typeof run === 'function', 'a function or { command }'), command]),
  })
  .refine(({ event, tool }) => tool === undefined || TOOL_EVENTS.some((about) => about === event), {
    path: ['tool'],
    message: `only ${TOOL_EVENTS.join(', ')} are about a tool`,
  })
  .refine(({ event, run }) => isAsking(event) || typeof run === 'function' || isShort(run.timeLimitMs), {
    path: ['run', 'timeLimitMs'],
    message: `a hook that is only told may take ${POLICY.hooks.limitMs} ms at most`,
  });

function isShort(timeLimitMs: number | undefined): boolean {
  return timeLimitMs === undefined || timeLimitMs <= POLICY.hooks.limitMs;
}

export function resolvePermissions(definition: PermissionsDefinition | undefined): Permissions {
  if (definition === undefined) return DEFAULT_PERMISSIONS;
  return {
    mode: definition.mode,
    rules: definition.rules ?? DEFAULT_PERMISSIONS.rules,
    approvers: definition.approvers ?? DEFAULT_PERMISSIONS.approvers,
    expiryMs: definition.expiryMs ?? DEFAULT_PERMISSIONS.expiryMs,
    onExpiry: definition.onExpiry ?? DEFAULT_PERMISSIONS.onExpiry,
  };
}
