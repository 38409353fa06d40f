import { condition, isCancellation } from '@temporalio/workflow';

/** A back-off on a durable timer; a cancel ends it at once, and so does what `isCut` says. */
export async function rest(
  { forMs }: { readonly forMs: number },
  isCut: () => boolean,
): Promise<{ readonly kind: 'rested' }> {
  try {
    await condition(isCut, forMs, { summary: 'rest before the next try' });
  } catch (error) {
    if (!isCancellation(error)) throw error;
  }
  return { kind: 'rested' };
}
