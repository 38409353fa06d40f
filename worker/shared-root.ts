import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { markOfRoot } from '../activities/store/shared-root.ts';
import type { House } from './house.ts';
import { SetupError } from './setup-error.ts';

const MARK_FILE = '.pawl-root';

/**
 * Makes sure that this machine has the workspace root that every worker has, by the mark in it. With the embedded
 * servers every worker is on this machine, and there is nothing to compare. Throws SetupError.
 */
export async function requireSharedRoot({ config, database }: Pick<House, 'config' | 'database'>): Promise<void> {
  if (config.workspaceKind !== 'shared' || config.temporalAddress === null) return;
  const { workspaceRoot: root } = config;
  const mark = await markOfRoot(database.db, config.taskQueue, (fresh) => putMark(root, fresh));
  const found = markIn(root);
  if (found === mark) return;
  const what = found === null ? `lacks the file ${MARK_FILE}` : `has the ${MARK_FILE} of another installation`;
  throw new SetupError(
    `The workspace root ${root} is not the one that the other workers share: it ${what}. Mount the shared folder there, or set workspaceKind: 'host'.`,
  );
}

function markIn(root: string): string | null {
  const path = join(root, MARK_FILE);
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : null;
}

/** Never over the mark of somebody else. */
function putMark(root: string, mark: string): void {
  try {
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, MARK_FILE), `${mark}\n`, { flag: 'wx', flush: true });
  } catch (error) {
    const { code } = error as { code?: unknown };
    const why = code === 'EEXIST' ? `it has the ${MARK_FILE} of another installation` : `it can’t be written`;
    throw new SetupError(`The workspace root ${root} can't be shared: ${why}. Name another folder as workspaceRoot.`);
  }
}
