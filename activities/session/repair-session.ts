import type { Message, ToolCall } from '../../workflows/core/transcript.ts';
import type { Deps } from '../deps.ts';
import { estimateMessage } from '../model/estimate.ts';
import { NO_RESULT_TEXT } from '../model/repair-pairs.ts';
import { appendRepair, unansweredOf } from '../store/repair.ts';
import { readResults } from '../store/samples.ts';
import { ChainBroken, chainOn, loadChain } from '../store/transcript.ts';
import { resultMessages } from '../turn/results.ts';

/** Gives each open call at the end of a chain its result: the one that is known, or the plain truth that none is. */
export async function repairSession(
  { database: { db }, chains }: Pick<Deps, 'database' | 'chains'>,
  at: { readonly session: string; readonly head: string },
): Promise<void> {
  const chain = await loadChain(db, chains, at.head).catch((error: unknown) => {
    // The turn that opens on it ends over it, and says so.
    if (error instanceof ChainBroken) return [];
    throw error;
  });
  const open = unansweredOf(chain);
  const last = chain[chain.length - 1];
  if (!open || !last || open.link.body.kind !== 'assistant') return;
  const { calls } = open.link.body;
  const known = resultMessages(await readResults(db, open.link.hash));
  const bodies = open.ordinals.map((ordinal) => {
    const found = known.find((result) => result.kind === 'tool_result' && result.ordinal === ordinal);
    return found ?? unknownResult(calls[ordinal], ordinal);
  });
  await appendRepair(db, at, chainOn(last, bodies, estimateMessage));
}

function unknownResult(call: ToolCall | undefined, ordinal: number): Message {
  const { id: callId = '', name: tool = '' } = call ?? {};
  return { kind: 'tool_result', ordinal, callId, tool, text: NO_RESULT_TEXT, isError: true, blob: null };
}
