/** The p-th percentile, by nearest rank. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/** A measurement for a person to read; printed with TEST_NUMBERS=1. */
export function note(what: string, numbers: unknown): void {
  if (process.env.TEST_NUMBERS) process.stderr.write(`${what}: ${JSON.stringify(numbers)}\n`);
}

/** How often each value occurs. */
export function tally(values: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
