import type { Db } from './database.ts';

/** Queries of the hot path, built once for each database handle instead of at each call. */
export function perDatabase<Q extends object>(build: (db: Db) => Q): (db: Db) => Q {
  const built = new WeakMap<Db, Q>();
  return (db) => {
    const before = built.get(db);
    if (before) return before;
    const queries = build(db);
    built.set(db, queries);
    return queries;
  };
}
