import type { EventEmitter } from 'node:events';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';
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
  openSummary: (text: string) => tells(text, 'compaction.started'),
  closeSummary: (text: string) => tells(text, 'context.compacted'),
  startEffect: (text: string) => tells(text, 'call.started'),
  noteGroup: (text: string) => text.includes('update "pawl"."effect" set "process_group"'),
  recordLost: (text: string) => tells(text, 'attempt.lost') && !tells(text, 'stream.ended'),
  recordSettled: (text: string) => tells(text, 'effect.settled') && !tells(text, 'call.finished'),
  finishCall: (text: string) => tells(text, 'call.finished'),
  startUndo: (text: string) => tells(text, 'effect.undoing'),
  finishUndo: (text: string) => tells(text, 'effect.undone'),
  startAgent: (text: string) => tells(text, 'agent.started'),
  writeEnd: (text: string) => tells(text, 'turn.ended'),
  stopGate: (text: string) => tells(text, 'stop_gate.answered'),
  closeReport: (text: string) => text.includes('"acknowledged_at"') && text.includes('"outbox"."id"'),
  rest: (text: string) => tells(text, 'driver.ended'),
  directGoal: (text: string) => tells(text, 'input.accepted') && text.includes('"source":"directive"'),
  openJudge: (text: string) =>
    inserts(text, 'usage') && !tells(text, 'sample.started') && !tells(text, 'compaction.started'),
  keepVerdict: (text: string) => tells(text, 'goal.judged'),
  recordGoal: (text: string) => tells(text, 'goal.moved') || tells(text, 'goal.ended'),
} as const;

/** A boundary of one of several jobs: one of these texts is in it. */
export interface Place extends Boundary {
  readonly whose: readonly string[];
}

/** Nothing of this process runs after this line. */
function die(): never {
  process.kill(process.pid, 'SIGKILL');
  for (;;);
}

/** Arms this process: it ends itself with SIGKILL at that boundary. Product code knows nothing of it. */
export function dieAt(boundary: Boundary): void {
  const { when, laterMs } = boundary;
  watch((text) => hasAll(text, boundary), boundary, {
    before: () => (when === 'before' ? die() : 'goes'),
    after: () => {
      if (when === 'before') return 'goes';
      if (laterMs === undefined) die();
      setTimeout(die, laterMs);
      return 'goes';
    },
  });
}

/**
 * Arms this process: what comes to one of these places stands there for good, and `arrived` is told which. When all
 * have arrived it is killed from outside: each job is then lost at its own boundary, for the price of one process.
 */
export function standAt(places: readonly Place[], arrived: (place: number) => void): void {
  for (const [n, place] of places.entries()) {
    const at = (when: Boundary['when']) => (): 'stays' | 'goes' => {
      if (when !== place.when) return 'goes';
      arrived(n);
      return 'stays';
    };
    watch((text) => hasAll(text, place) && place.whose.some((each) => text.includes(each)), place, {
      before: at('before'),
      after: at('after'),
    });
  }
}

function hasAll(text: string, { having }: Boundary): boolean {
  return having === undefined || text.includes(having);
}

/** Told right before the boundary, and right after it; what stays there never goes on. */
interface Moment {
  before(): 'stays' | 'goes';
  after(): 'stays' | 'goes';
}

function watch(isIt: (text: string) => boolean, { at }: Boundary, moment: Moment): void {
  if (at === 'rename') watchRename(isIt, moment);
  else watchStore((text) => COMMITS[at](text) && isIt(text), moment);
}

const standing: unknown[] = [];

/** What stands is kept, or its files and connections would be collected. */
function forGood(): Promise<never> {
  return new Promise((resolve) => standing.push(resolve));
}

type Query = (this: EventEmitter, ...args: unknown[]) => unknown;

function watchStore(isIt: (text: string) => boolean, moment: Moment): void {
  const open = new WeakMap<object, string[]>();
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const { query } = prototype;
  prototype.query = function (...args) {
    const commit = commitOf(textOf(args), open, this);
    if (commit === null || !isIt(commit)) return query.apply(this, args);
    // The server ends a transaction that stands for too long; nobody else listens then.
    this.on('error', () => {});
    if (moment.before() === 'stays') return forGood();
    const callback = args[args.length - 1];
    if (typeof callback !== 'function') {
      return (query.apply(this, args) as Promise<unknown>).then((result) =>
        moment.after() === 'stays' ? forGood() : result,
      );
    }
    args[args.length - 1] = (...results: unknown[]) => {
      if (moment.after() === 'goes') (callback as (...all: unknown[]) => void)(...results);
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

function watchRename(isIt: (path: string) => boolean, moment: Moment): void {
  const { rename } = fs;
  fs.rename = async (from, to) => {
    const watched = String(from).includes('/.pawl-') && isIt(await realPath(String(to)));
    if (watched && moment.before() === 'stays') return await forGood();
    await rename(from, to);
    if (watched && moment.after() === 'stays') await forGood();
  };
  syncBuiltinESMExports();
}

/** Our code names a file by its open folder, `/proc/self/fd/…`. */
async function realPath(path: string): Promise<string> {
  return join(await fs.realpath(dirname(path)), basename(path));
}
