import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import pg from 'pg';

/** Where a process of ours dies: a commit of the store, or the rename that puts a file in its place. */
export type BoundaryName = keyof typeof COMMITS | 'rename';

export interface Boundary {
  /** Before it is sent, or when it is acknowledged and before our code hears of it. */
  readonly when: 'before' | 'after';
  readonly at: BoundaryName;
  /** Only one that has this text in its statements or values; any, if left out. */
  readonly having?: string;
  /** After the acknowledgement, this much later: somewhere in the gap that follows. */
  readonly laterMs?: number;
}

const inserts = (text: string, table: string) => text.includes(`insert into "pawl"."${table}"`);
const tells = (text: string, kind: string) =>
  text.includes('insert into pawl.event') && text.includes(`"kind":"${kind}"`);

/** A commit, be it one statement or a transaction, is known by what it writes or by the events that it tells. */
const COMMITS = {
  storeJob: (text: string) => inserts(text, 'job'),
  promote: (text: string) => tells(text, 'turn.opened'),
  enterRun: (text: string) => inserts(text, 'turn_run') || text.includes('insert into pawl.turn_run'),
  openSample: (text: string) => tells(text, 'sample.started'),
  closeSample: (text: string) => tells(text, 'stream.ended') && !tells(text, 'attempt.lost'),
  closeLost: (text: string) => tells(text, 'stream.ended') && tells(text, 'attempt.lost'),
  startEffect: (text: string) => tells(text, 'call.started'),
  noteGroup: (text: string) => text.includes('update "pawl"."effect" set "process_group"'),
  recordLost: (text: string) => tells(text, 'attempt.lost') && !tells(text, 'stream.ended'),
  recordSettled: (text: string) => tells(text, 'effect.settled') && !tells(text, 'call.finished'),
  finishCall: (text: string) => tells(text, 'call.finished'),
  writeEnd: (text: string) => tells(text, 'turn.ended'),
  stopGate: (text: string) => tells(text, 'stop_gate.answered'),
  closeReport: (text: string) => text.includes('"acknowledged_at"') && text.includes('"outbox"."id"'),
  rest: (text: string) => tells(text, 'driver.ended'),
} as const;

/** Nothing of this process runs after this line. */
function die(): never {
  process.kill(process.pid, 'SIGKILL');
  for (;;);
}

/** Arms this process: it ends itself with SIGKILL at that boundary. Product code knows nothing of it. */
export function dieAt({ when, at, having, laterMs }: Boundary): void {
  const passes = (text: string) => having === undefined || text.includes(having);
  const moment: Moment = {
    before: () => {
      if (when === 'before') die();
    },
    after: () => {
      if (when === 'before') return;
      if (laterMs === undefined) die();
      setTimeout(die, laterMs);
    },
  };
  if (at === 'rename') watchRename(passes, moment);
  else watchStore((text) => COMMITS[at](text) && passes(text), moment);
}

interface Moment {
  before(): void;
  after(): void;
}

type Query = (this: object, ...args: unknown[]) => unknown;

function watchStore(isIt: (text: string) => boolean, moment: Moment): void {
  const open = new WeakMap<object, string[]>();
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const { query } = prototype;
  prototype.query = function (...args) {
    const commit = commitOf(textOf(args), open, this);
    if (commit === null || !isIt(commit)) return query.apply(this, args);
    moment.before();
    const callback = args[args.length - 1];
    if (typeof callback !== 'function') {
      return (query.apply(this, args) as Promise<unknown>).then((result) => {
        moment.after();
        return result;
      });
    }
    args[args.length - 1] = (...results: unknown[]) => {
      moment.after();
      (callback as (...all: unknown[]) => void)(...results);
    };
    return query.apply(this, args);
  };
}

function textOf([first, second]: readonly unknown[]): string {
  const config = (typeof first === 'string' ? { text: first } : first) as { text?: string; values?: unknown[] };
  const values = Array.isArray(second) ? second : (config.values ?? []);
  return [config.text ?? '', ...values.filter((value) => typeof value === 'string')].join('\n');
}

/** What becomes durable with this statement; null inside a transaction. */
function commitOf(text: string, open: WeakMap<object, string[]>, client: object): string | null {
  const statements = open.get(client);
  if (/^begin\b/i.test(text)) open.set(client, []);
  else if (/^(commit|rollback)\b/i.test(text)) open.delete(client);
  else if (statements) statements.push(text);
  else return text;
  return /^commit\b/i.test(text) ? (statements?.join('\n') ?? '') : null;
}

function watchRename(passes: (path: string) => boolean, moment: Moment): void {
  const { rename } = fs;
  fs.rename = async (from, to) => {
    const isIt = String(from).includes('/.pawl-') && passes(String(to));
    if (isIt) moment.before();
    await rename(from, to);
    if (isIt) moment.after();
  };
  syncBuiltinESMExports();
}
