import { createHash } from 'node:crypto';

const LEGAL = /^[a-zA-Z0-9_-]{1,64}$/;
const LONGEST = 64;
const HASH_CHARS = 8;

/**
 * The name that the model calls a remote tool by. It depends on nothing but the two names, so it stays the same
 * whatever else the server offers, and in whatever order. A name that had to be changed ends with a hash.
 */
export function toolName(server: string, tool: string): string {
  const plain = `mcp__${server}__${tool}`;
  if (LEGAL.test(plain)) return plain;
  const legal = plain.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, LONGEST - HASH_CHARS - 1);
  const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, HASH_CHARS);
  return `${legal}_${hash}`;
}

/** Whether a name can only be a remote tool's, or a pattern for them: `mcp__github__*`. */
export function isRemoteName(name: string): boolean {
  return name.startsWith('mcp__');
}

/** `*` stands for all tools of a server, or of all servers. */
export function matchesName(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
