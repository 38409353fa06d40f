import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Makes the folder if it is missing and returns its real path. Root lets the database's user pass through, not look. */
export function openHome(home: string): string {
  if (!existsSync(home)) {
    mkdirSync(home, { recursive: true });
    chmodSync(home, process.getuid?.() === 0 ? 0o711 : 0o700);
  }
  const real = realpathSync(home);
  mkdirSync(join(real, 'logs'), { recursive: true, mode: 0o700 });
  return real;
}

/** 16 hex digits that name this folder in places where a path does not fit. */
export function homeHash(realHome: string): string {
  return createHash('sha256').update(realHome).digest('hex').slice(0, 16);
}

/** The secret of this name, or null. They are kept in `<home>/secrets`, readable by the owner only. */
export function readSecret(home: string, name: string): string | null {
  return readSecrets(home)[name] ?? null;
}

/** The secret of this name; 32 random bytes in hex are made if there is none. Only the owner of the home calls this. */
export function ensureSecret(home: string, name: string): string {
  const secrets = readSecrets(home);
  const known = secrets[name];
  if (known !== undefined) return known;
  const secret = randomBytes(32).toString('hex');
  replaceFile(join(home, 'secrets'), JSON.stringify({ ...secrets, [name]: secret }, null, 2));
  return secret;
}

/** Writes a 0600 file so that a reader sees the old or the new one, never half. */
export function replaceFile(path: string, text: string): void {
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, `${text}\n`, { mode: 0o600, flush: true });
  renameSync(fresh, path);
}

function readSecrets(home: string): Record<string, string> {
  const path = join(home, 'secrets');
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, string>) : {};
}
