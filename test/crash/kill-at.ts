import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import pg from 'pg';

/** Where a process of ours dies: a commit of the store, a statement of its own, or the rename that puts a file in its place. */
export type BoundaryName = keyof typeof COMMITS | keyof typeof STATEMENTS | 'rename';

export interface Boundary {
  readonly at: BoundaryName;
  /** Before it is sent, or when it is acknowledged and before our code hears of it. */
  readonly when: 'before' | 'after';
  /** The how manieth of this process, from 1. */
  readonly nth: number;
  /** After the acknowledgement, this much later: somewhere in the gap that follows. */
  readonly laterMs?: number;
}

/** A transaction is known by what it writes. */
const COMMITS = {
  storeJob: (text: string) => text.includes('insert into "pawl"."job"'),
  promote: (text: string) => text.includes('insert into "pawl"."turn" '),
  enterRun: (text: string) => text.includes('insert into "pawl"."turn_run"'),
  openSample: (text: string) => text.includes('insert into "pawl"."usage"'),
  closeSample: (text: string) => text.includes('insert into "pawl"."commit"'),
  closeLost: (text: string) => text.includes('delete from "pawl"."delta"') && text.includes('attempt.lost'),
  startEffect: (text: string) => text.includes('update "pawl"."effect"') && !text.includes('update "pawl"."call"'),
  finishCall: (text: string) => text.includes('update "pawl"."call"'),
  writeEnd: (text: string) => text.includes('insert into "pawl"."outbox"'),
  rest: (text: string) => text.includes('driver.ended'),
} as const;

/** A statement outside of transactions. */
const STATEMENTS = {
  noteGroup: (text: string) => text.includes('update "pawl"."effect" set "process_group"'),
  recordLost: (text: string) => text.includes('insert into pawl.event') && text.includes('"attempt.lost"'),
  recordSettled: (text: string) => text.includes('insert into pawl.event') && text.includes('"effect.settled"'),
} as const;

/** Nothing of this process runs after this line. */
function die(): never {
  process.kill(process.pid, 'SIGKILL');
  for (;;);
}

/** Arms this process: it ends itself with SIGKILL at that boundary. Product code knows nothing of it. */
export function dieAt(boundary: Boundary): void {
  let passed = 0;
  const isIt = (name: BoundaryName) => name === boundary.at && ++passed === boundary.nth;
  const after = () => (boundary.laterMs === undefined ? die() : void setTimeout(die, boundary.laterMs));
  watchStore(isIt, boundary.when, after);
  watchRename(isIt, boundary.when, after);
}

type Query = (this: object, ...args: unknown[]) => unknown;

function watchStore(isIt: (name: BoundaryName) => boolean, when: Boundary['when'], after: () => void): void {
  const open = new WeakMap<object, string[]>();
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const { query } = prototype;
  prototype.query = function (...args) {
    const text = textOf(args);
    const name = nameOf(text, open, this);
    if (name === null || !isIt(name)) return query.apply(this, args);
    if (when === 'before') die();
    const callback = args[args.length - 1];
    if (typeof callback === 'function') {
      args[args.length - 1] = (...results: unknown[]) => {
        after();
        (callback as (...all: unknown[]) => void)(...results);
      };
      return query.apply(this, args);
    }
    return (query.apply(this, args) as Promise<unknown>).then((result) => {
      after();
      return result;
    });
  };
}

function textOf([first, second]: readonly unknown[]): string {
  const text = typeof first === 'string' ? first : ((first as { text?: string } | undefined)?.text ?? '');
  const values = Array.isArray(second) ? second : ((first as { values?: unknown[] } | undefined)?.values ?? []);
  return [text, ...values.filter((value) => typeof value === 'string')].join('\n');
}

function nameOf(text: string, open: WeakMap<object, string[]>, client: object): BoundaryName | null {
  const statements = open.get(client);
  if (/^begin\b/i.test(text)) open.set(client, []);
  else if (/^rollback\b/i.test(text)) open.delete(client);
  else if (/^commit\b/i.test(text)) {
    open.delete(client);
    return find(COMMITS, statements?.join('\n') ?? '');
  } else if (statements) statements.push(text);
  else return find(STATEMENTS, text);
  return null;
}

function find<K extends BoundaryName>(names: Readonly<Record<K, (text: string) => boolean>>, text: string): K | null {
  return (Object.keys(names) as K[]).find((name) => names[name](text)) ?? null;
}

function watchRename(isIt: (name: BoundaryName) => boolean, when: Boundary['when'], after: () => void): void {
  const { rename } = fs;
  fs.rename = async (from, to) => {
    if (!String(from).includes('/.pawl-') || !isIt('rename')) return await rename(from, to);
    if (when === 'before') die();
    await rename(from, to);
    after();
  };
  syncBuiltinESMExports();
}
