/** Shorter values are words of everyday text, and masking them would spoil it. */
const LEAST_CHARS = 8;
/** So is a password of so many lower-case letters and nothing else, such as `postgres`. */
const WORD = /^[a-z]{1,12}$/;
const MASK = '***';
const SECRET_NAME = /((^|_)(TOKEN|KEY|SECRET)|PASSWORD|PASSWD)$/i;
const PASSWORD_NAME = /(PASSWORD|PASSWD)$/i;

type Environment = Readonly<Record<string, string | undefined>>;

/** What this process knows and nobody else may read. `names`: variables that the configuration points to. */
export function secretsOf(environment: Environment, names: readonly string[] = []): string[] {
  const found = Object.entries(environment).flatMap(([name, value = '']) => [
    ...(SECRET_NAME.test(name) || names.includes(name) ? named(name, value) : []),
    ...inUrl(value),
  ]);
  return [...new Set(found)];
}

function named(name: string, value: string): string[] {
  if (value.trim() === '') return [];
  if (PASSWORD_NAME.test(name) && isWord(value)) return [...asPassword(value), `${name}=${value}`];
  return [value, ...value.split(/\r?\n/)].filter((each) => each.trim().length >= LEAST_CHARS).flatMap(spellings);
}

/** Password of a URL such as `DATABASE_URL`. */
function inUrl(value: string): string[] {
  const [, user = '', written] = /^[a-z][a-z\d+.-]*:\/\/([^\s/@:]*):([^\s@]+)@/i.exec(value) ?? [];
  if (written === undefined) return [];
  return [...new Set([written, decoded(written)])].flatMap((password) =>
    isWord(password)
      ? asLogin(decoded(user), password)
      : [...spellings(password), base64(`${decoded(user)}:${password}`)],
  );
}

function decoded(written: string): string {
  try {
    return decodeURIComponent(written);
  } catch {
    return written;
  }
}

/** Too ordinary to be hidden in every text: it is hidden where it can be told for a password. */
function isWord(password: string): boolean {
  return password.length < LEAST_CHARS || WORD.test(password);
}

/** The user too, since a word beside a mask says which password it was; the last one is a header's. */
function asLogin(user: string, password: string): string[] {
  const login = `${user}:${password}`;
  return [`${login}@`, `:${password}@`, base64(login), ...asPassword(password)];
}

/** As files of settings, connection strings and JSON name it. */
function asPassword(password: string): string[] {
  return ['password', 'PASSWORD'].flatMap((name) =>
    [`${name}=`, `${name}='`, `${name}="`, `${name}: `, `${name}: '`, `${name}: "`, `${name}":"`, `${name}": "`].map(
      (says) => says + password,
    ),
  );
}

/** The ways in which tools print one value. */
function spellings(value: string): string[] {
  const inJson = JSON.stringify(value).slice(1, -1);
  return [value, inJson, encodeURIComponent(value), base64(value)];
}

function base64(value: string): string {
  return Buffer.from(value).toString('base64').replace(/=+$/, '');
}

/** Replaces secrets wherever they stand, and whatever they are split over. */
export interface Masker {
  text(text: string): string;
  bytes(bytes: Buffer): Buffer;
  stream(): MaskStream<Buffer>;
  textStream(): MaskStream<string>;
}

/** For output that comes in pieces: what may be the beginning of a secret is held back. */
export interface MaskStream<Chunk> {
  write(chunk: Chunk): Chunk;
  end(): Chunk;
}

/** `secrets` is asked anew for each masking, since keys change while a worker runs. */
export function createMasker(secrets: () => readonly string[]): Masker {
  return {
    text(text) {
      const wanted = patternOf(secrets());
      return wanted === null ? text : text.replaceAll(wanted, MASK);
    },
    bytes(bytes) {
      const stream = maskStream(secrets());
      return Buffer.concat([stream.write(bytes), stream.end()]);
    },
    stream: () => maskStream(secrets()),
    textStream: () => maskText(secrets()),
  };
}

function maskStream(secrets: readonly string[]): MaskStream<Buffer> {
  // In Latin-1 each byte is one character, so any bytes pass unharmed.
  const inner = maskText(secrets.map((secret) => Buffer.from(secret).toString('latin1')));
  return {
    write: (chunk) => Buffer.from(inner.write(chunk.toString('latin1')), 'latin1'),
    end: () => Buffer.from(inner.end(), 'latin1'),
  };
}

function maskText(secrets: readonly string[]): MaskStream<string> {
  const wanted = patternOf(secrets);
  if (wanted === null) return { write: (chunk) => chunk, end: () => '' };
  let held = '';
  const pass = (text: string, open: number) => {
    // A secret that is whole goes whole, though another may begin in it.
    let from = text.length - open;
    for (const { 0: found, index } of text.matchAll(wanted)) {
      if (index < from) from = Math.max(from, index + found.length);
    }
    held = text.slice(from);
    return text.slice(0, from).replaceAll(wanted, MASK);
  };
  return {
    write(chunk) {
      const text = held + chunk;
      return pass(text, openEnd(text, secrets));
    },
    end: () => pass(held, 0),
  };
}

/** Length of the longest end of a text that a secret may begin with. */
function openEnd(text: string, secrets: readonly string[]): number {
  let longest = 0;
  for (const secret of secrets) {
    for (let length = Math.min(secret.length - 1, text.length); length > longest; length--) {
      if (text.endsWith(secret.slice(0, length))) longest = length;
    }
  }
  return longest;
}

/** Of two that begin alike the longer is found. */
function patternOf(secrets: readonly string[]): RegExp | null {
  if (secrets.length === 0) return null;
  const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  return new RegExp(
    [...secrets]
      .sort((a, b) => b.length - a.length)
      .map(literal)
      .join('|'),
    'g',
  );
}
