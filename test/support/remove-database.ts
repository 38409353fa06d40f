import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Removes the files of a home's database, where its user may not enter the home and they are elsewhere. */
export function removeDatabase(home: string): void {
  const note = join(home, 'postgres-location.json');
  if (!existsSync(note)) return;
  const { folder } = JSON.parse(readFileSync(note, 'utf8')) as { folder: string };
  rmSync(folder, { recursive: true, force: true });
}
