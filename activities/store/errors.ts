/** PostgreSQL's own word that this unique index was hit. */
export function isUniqueViolation(error: unknown, index: string): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code, constraint } = at as Error & { code?: string; constraint?: string };
    if (code === '23505') return constraint === index;
  }
  return false;
}

/** The server is gone, ending, starting or full: the same statement may be sent again later. */
export function isStoreAway(error: unknown): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code, message } = at as Error & { code?: unknown };
    // The driver and its pool give a broken connection no code.
    if (typeof code === 'string' ? AWAY.test(code) : BROKEN.test(message)) return true;
  }
  return false;
}

const AWAY = /^(08\w{3}|57P0[123]|53300|ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ETIMEDOUT|ENOTFOUND)$/;
const BROKEN =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/;
