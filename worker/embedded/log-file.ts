import { closeSync, existsSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';

const ROTATE_BYTES = 16 * 1024 * 1024;

/** Gives `use` an open descriptor that appends to the log; a big old log is put aside first. */
export async function withLogFile<T>(path: string, use: (fd: number) => Promise<T>): Promise<T> {
  if (existsSync(path) && statSync(path).size > ROTATE_BYTES) renameSync(path, `${path}.1`);
  const fd = openSync(path, 'a', 0o600);
  try {
    return await use(fd);
  } finally {
    closeSync(fd);
  }
}

/** The last line that says something, preferably an error. */
export function lastLogLine(path: string): string {
  if (!existsSync(path)) return '(no log)';
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
  const recent = lines.slice(-8);
  return (recent.findLast((line) => /fatal|panic|error/i.test(line)) ?? recent.at(-1) ?? '(empty log)').trim();
}
