import type { ActivityInterceptorsFactory } from '@temporalio/worker';
import type { Activities } from '../../activities/index.ts';
import { type Hold, hold } from '../../testing/index.ts';
import { gate } from '../../testing/reply.ts';

/** Before the body of an activity, or after it: what it commits is committed, and nobody has heard of it. */
type Where = 'before' | 'after';

export interface HeldActivity extends Hold {
  /** Resolves with the activity, however it ended. */
  readonly over: Promise<void>;
}

/** Stops activities of one workflow at their borders until the test says go, so that it decides what comes first. */
export interface ActivityHolds {
  /** For a worker. */
  readonly interceptors: ActivityInterceptorsFactory;
  /** Holds the next activity of that name in a workflow whose id begins so, once. */
  next(workflowId: string, activity: keyof Activities, where: Where): HeldActivity;
}

interface Placed {
  readonly workflowId: string;
  readonly activity: string;
  readonly where: Where;
  readonly held: HeldActivity;
  end(): void;
}

const BEAT_EVERY_MS = 500;

export function activityHolds(): ActivityHolds {
  const waiting = new Set<Placed>();
  return {
    next(workflowId, activity, where) {
      const over = gate();
      const held = { ...hold(), over: over.opened };
      waiting.add({ workflowId, activity, where, held, end: over.open });
      return held;
    },
    interceptors: (context) => ({
      inbound: {
        async execute(input, next) {
          const { activityType, workflowExecution } = context.info;
          const ends: (() => void)[] = [];
          const stop = async (at: Where) => {
            const placed = [...waiting].find(
              ({ workflowId, activity, where }) =>
                where === at && activity === activityType && workflowExecution?.workflowId.startsWith(workflowId),
            );
            if (!placed) return;
            waiting.delete(placed);
            ends.push(placed.end);
            placed.held.reach();
            // Held is not dead.
            const beat = setInterval(() => context.heartbeat(), BEAT_EVERY_MS);
            await placed.held.released;
            clearInterval(beat);
          };
          try {
            await stop('before');
            const result: unknown = await next(input);
            await stop('after');
            return result;
          } finally {
            for (const end of ends) end();
          }
        },
      },
    }),
  };
}
