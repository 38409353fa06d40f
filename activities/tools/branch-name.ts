import { z } from 'zod';

/** What git takes as the name of a branch, and nothing that could be read as an option or a pattern. */
export function isBranch(name: string): boolean {
  // Rules, not a pattern in the schema: some providers refuse one with look-aheads.
  return name !== '' && !/^[/.-]|\.\.|\/\/|\/\.|@\{|[\s~^:?*[\\\p{Cc}]|(\/|\.|\.lock)$/u.test(name) && name !== '@';
}

export const branchName = z.string().max(250).refine(isBranch, 'this is no branch name');

/** Lock of a branch on a forge: it is pushed before a pull request is opened from it. */
export function branchResource(repo: string, branch: string): string {
  return `branch:${repo.toLowerCase()}:${branch}`;
}
