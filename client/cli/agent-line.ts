import type { ShownAgent } from '../agents.ts';
import { costWords } from './cost-text.ts';

/** A sub-agent as one line: what it is, who started it, how it ended, what it cost. */
export function agentLine({ agent, name, mode, startedBy, end }: ShownAgent): string {
  const who = `${agent}  ${name}, ${mode}, by ${startedBy}`;
  if (!end) return `${who}: runs`;
  const { reason, detail, decidedBy, by, usage } = end;
  const decided = by === null ? decidedBy : `${decidedBy} (${by})`;
  const tokens = `${usage.inputTokens} tokens in, ${usage.outputTokens} out`;
  return `${who}: ${reason}/${detail}, decided by ${decided}; ${costWords(usage)}, ${tokens}`;
}
