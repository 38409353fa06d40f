import type { MiddlewareHandler } from 'hono';
import { problem } from './problem.ts';

const LOCAL = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Refuses what a foreign web page can make a browser send here: a name that was rebound to this address shows in
 * Host, another site's script in Origin.
 */
export function guardHost(extraHosts: readonly string[] = []): MiddlewareHandler {
  const allowed = new Set([...LOCAL, ...extraHosts.map((host) => host.toLowerCase())]);
  return async (c, next) => {
    const host = c.req.header('host') ?? new URL(c.req.url).host;
    if (!allowed.has(nameOf(host))) {
      return problem(
        'host-not-allowed',
        'Use localhost, or name this host in the settings of the server (--allow-host).',
      );
    }
    const origin = c.req.header('origin');
    if (origin !== undefined && !isSameHost(origin, host)) {
      return problem('origin-not-allowed', 'Web pages of other sites may not use this API.');
    }
    return await next();
  };
}

function nameOf(host: string): string {
  return host.toLowerCase().replace(/:\d+$/, '');
}

function isSameHost(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}
