/** The name of the database's password among the secrets of the home. */
export const PASSWORD = 'postgresPassword';

/** A connection string that `pg` and libpq understand. The port is there since PGPORT would count otherwise. */
export function databaseUrl(socketDir: string, database: string, password: string): string {
  return `postgresql://pawl:${password}@/${database}?host=${encodeURIComponent(socketDir)}&port=5432`;
}
