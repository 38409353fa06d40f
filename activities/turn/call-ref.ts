import type { CallRef, Verdict } from '../../workflows/core/tools.ts';
import { lockKey, sha256 } from '../store/hash.ts';
import type { TurnOwner } from '../store/owners.ts';
import type { Tool } from '../tools/define-tool.ts';
import type { ParsedArguments } from '../tools/parse-arguments.ts';

/** A call as the workflow sees it: names of our own, hashes, no text of the model. */
export function refOf(
  { id, workspacePath }: Pick<TurnOwner, 'id' | 'workspacePath'>,
  tool: Tool,
  ordinal: number,
  parsed: ParsedArguments & { readonly ok: true },
  verdict: Verdict,
): CallRef {
  return {
    ordinal,
    tool: tool.name,
    runs: tool.runs,
    effect: tool.effect,
    argsHash: sha256(parsed.canonical),
    locks: tool.locks(parsed.args, workspacePath).map(({ resource, mode }) => ({ key: lockKey(id, resource), mode })),
    verdict,
    ...(tool.undo && tool.effect !== 'none' ? { undo: 'declared' as const } : {}),
    ...(tool.polling ? { polling: true } : {}),
  };
}

/** A call that is answered already; a name that is not ours is the model's text and stays out. */
export function answeredRef(ordinal: number, tool: Tool | null, argsHash: string): CallRef {
  return {
    ordinal,
    tool: tool?.name ?? 'unknown',
    runs: tool?.runs ?? 'activity',
    effect: tool?.effect ?? 'none',
    argsHash,
    locks: [],
    verdict: 'answered',
  };
}
