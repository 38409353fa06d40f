/** Most batches have one call; the engine's sandbox makes each promise of a race dear. */
export function firstOf<T>(works: readonly Promise<T>[]): Promise<T> {
  const [only, ...others] = works;
  return only && others.length === 0 ? only : Promise.race(works);
}
