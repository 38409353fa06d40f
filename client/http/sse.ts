import type { RunEvent } from '../follow.ts';
import type { JobEnd } from '../job.ts';

export type RunEvents = AsyncGenerator<RunEvent, JobEnd | null, void>;

/**
 * Events as a body of server-sent events, read at the client's pace; a comment where nothing happened for
 * `heartbeatMs`. `first` is what was taken from `events` already. `leave` is called when the client goes.
 */
export function sseBody(
  events: RunEvents,
  { first, heartbeatMs, leave }: { first: Promise<Taken>; heartbeatMs: number; leave: () => void },
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let pending: Promise<Taken> | null = first;
  return new ReadableStream({
    async pull(controller) {
      pending ??= events.next();
      const taken = await orNothing(pending, heartbeatMs);
      if (taken === null) {
        controller.enqueue(encoder.encode(': still here\n\n'));
        return;
      }
      pending = null;
      if (taken.value) controller.enqueue(encoder.encode(frameOf(taken.value)));
      if (taken.done) controller.close();
    },
    async cancel() {
      leave();
      await events.return(null);
    },
  });
}

export type Taken = IteratorResult<RunEvent, JobEnd | null>;

/** Null if it takes longer. */
export async function orNothing<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function frameOf(item: RunEvent | JobEnd): string {
  if (!('type' in item)) return frame('end', item);
  if (item.type === 'delta') return frame('delta', item);
  return `id: ${item.event.seq}\n${frame(item.event.event.kind, item)}`;
}

/** JSON has no bare line break, so one data line is enough. */
function frame(event: string, data: unknown): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
