import { condition, isCancellation } from '@temporalio/workflow';

/** A back-off on a durable timer; a cancel ends it at once. */
export async function rest({ forMs }: { readonly forMs: number }): Promise<{ readonly kind: 'rested' }> {
  try {
    await condition(() => false, forMs, { summary: 'rest before the next try' });
  } catch (error) {
    if (!isCancellation(error)) throw error;
  }
  return { kind: 'rested' };
}
