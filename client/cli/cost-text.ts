import type { CostReport, UsageSum } from '../cost.ts';
import type { Usage } from '../../workflows/core/sample-outcome.ts';

const MICRO = 1_000_000;
const CENT = 10_000;

/** An amount: cents where it is ten of them or more, else four places, so that small costs do not read as none. */
export function usd(microUsd: number): string {
  if (microUsd > 0 && microUsd < 100) return '< $0.0001';
  return `$${(microUsd / MICRO).toFixed(microUsd === 0 || microUsd >= 10 * CENT ? 2 : 4)}`;
}

/** What was spent. Where something is not known, that is said, and the known part is a lower bound, never zero. */
export function costWords({ microUsd, complete }: Pick<Usage, 'microUsd' | 'complete'>): string {
  if (microUsd === null) return complete ? 'no price known' : 'no price known, incomplete';
  return complete ? usd(microUsd) : `≥ ${usd(microUsd)}, incomplete`;
}

/** All of it, for people: one line a model, then the sum. */
export function costText(report: CostReport): string {
  if (report.requests === 0) return 'No model request was made.';
  const { models } = report;
  const lines = models.map((each) => `${each.model}: ${sumText(each)}`);
  return (models.length > 1 ? [...lines, `in all: ${sumText(report)}`] : lines).join('\n');
}

function sumText(sum: UsageSum): string {
  const cached = sum.cachedTokens > 0 ? ` (${sum.cachedTokens} cached)` : '';
  const reasoning = sum.reasoningTokens > 0 ? ` (${sum.reasoningTokens} reasoning)` : '';
  const held = sum.heldMicroUsd > 0 ? ` (a budget counts up to ${usd(sum.heldMicroUsd)} more)` : '';
  const cost = `${costWords(sum)}${held}`;
  const tokens = `${sum.requests} requests, ${sum.inputTokens} tokens in${cached}, ${sum.outputTokens} out${reasoning}`;
  return [cost, tokens, ...wasted(sum), ...unknown(sum)].join('; ');
}

function wasted({ wasted: requests, wastedMicroUsd }: UsageSum): string[] {
  if (requests === 0) return [];
  return [`${requests} wasted${wastedMicroUsd === null ? '' : `, ${usd(wastedMicroUsd)}`}`];
}

function unknown({ incomplete }: UsageSum): string[] {
  return incomplete === 0 ? [] : [`usage of ${incomplete} not known`];
}
