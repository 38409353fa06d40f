/** PostgreSQL's own word that this unique index was hit. */
export function isUniqueViolation(error: unknown, index: string): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code, constraint } = at as Error & { code?: string; constraint?: string };
    if (code === '23505') return constraint === index;
  }
  return false;
}
