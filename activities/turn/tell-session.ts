import type { Deps } from '../deps.ts';

/** A row in the store is the promise; this only makes it quick. The sweeper repeats what gets lost. */
export async function tellSession({ engine, log }: Pick<Deps, 'engine' | 'log'>, session: string): Promise<void> {
  try {
    await engine.look(session);
  } catch {
    log.warn({ session }, 'a session could not be told to look; the sweeper will');
  }
}

/** The same for the goal that the session works on. */
export async function tellGoal({ engine, log }: Pick<Deps, 'engine' | 'log'>, goal: string): Promise<void> {
  try {
    await engine.lookGoal(goal);
  } catch {
    log.warn({ goal }, 'a goal could not be told of a turn’s end; the sweeper will');
  }
}
