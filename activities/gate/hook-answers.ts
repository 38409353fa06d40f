import { z } from 'zod';
import { canonicalJson } from '../store/hash.ts';
import type { PermittingEvent } from './hook-types.ts';
import type { FailedHook, HookSaid } from './run-hook.ts';

export type PermitAnswer =
  | { readonly kind: 'deny'; readonly reason: string }
  | { readonly kind: 'rewrite'; readonly json: string }
  | { readonly kind: 'nothing' }
  | FailedHook;

export type StopAnswer =
  | { readonly kind: 'block'; readonly reason: string }
  | { readonly kind: 'stop'; readonly why: string | null }
  | { readonly kind: 'nothing' }
  | FailedHook;

const Nothing = z.union([z.undefined(), z.null(), z.strictObject({})]);
/** Whatever comes with it, a deny is one. */
const Deny = z.object({ deny: z.string() });
const Rewrite = z.strictObject({ rewrite: z.looseObject({}) });
const Stop = z.object({ continue: z.literal(false), stopReason: z.string().optional() });
const Block = z.object({ decision: z.literal('block'), reason: z.string() });
const GoesAhead = z.strictObject({ continue: z.literal(true) });

/** The answer to whether a call may run, or a prompt be taken. */
export function permitAnswerOf(said: HookSaid, event: PermittingEvent): PermitAnswer {
  if (said.kind === 'failed') return said;
  if (said.kind === 'objected') return { kind: 'deny', reason: said.reason };
  const { value } = said;
  if (Nothing.safeParse(value).success) return { kind: 'nothing' };
  const deny = Deny.safeParse(value);
  if (deny.success) return { kind: 'deny', reason: deny.data.deny };
  const rewrite = Rewrite.safeParse(value);
  if (!rewrite.success) return { kind: 'failed', why: 'its answer is neither deny nor rewrite' };
  if (event !== 'PreToolUse') return { kind: 'failed', why: 'there is nothing to rewrite' };
  return { kind: 'rewrite', json: canonicalJson((value as { rewrite: unknown }).rewrite) };
}

/** The answer to whether a turn may end. Whoever wants an end and blocks as well gets the end. */
export function stopAnswerOf(said: HookSaid): StopAnswer {
  if (said.kind === 'failed') return said;
  if (said.kind === 'objected') return { kind: 'block', reason: said.reason };
  const { value } = said;
  if (Nothing.safeParse(value).success || GoesAhead.safeParse(value).success) return { kind: 'nothing' };
  const stop = Stop.safeParse(value);
  if (stop.success) return { kind: 'stop', why: stop.data.stopReason ?? null };
  const block = Block.safeParse(value);
  if (block.success) return { kind: 'block', reason: block.data.reason };
  return { kind: 'failed', why: 'its answer is neither block nor continue: false' };
}
