import type { Deps } from '../deps.ts';

/** A row in the store is the promise; this only makes it quick. The sweeper repeats what gets lost. */
export async function tellSession({ engine, log }: Pick<Deps, 'engine' | 'log'>, session: string): Promise<void> {
  try {
    await engine.look(session);
  } catch {
    log.warn({ session }, 'a session could not be told to look; the sweeper will');
  }
}
