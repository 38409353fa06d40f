import { readdirSync, readFileSync } from 'node:fs';
import { asc, eq } from 'drizzle-orm';
import { expect } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { call, delta, effect, input, outbox, session, turn, usage } from '../../activities/store/schema.ts';
import { ChainCache, loadChain } from '../../activities/store/transcript.ts';
import { processesOf } from '../../activities/tools/reap.ts';
import { countToolResults, lastUserText, type ScriptedProvider } from '../../testing/index.ts';
import type { House } from '../../worker/house.ts';
import type { JournalEvent, RecordedEvent } from '../../workflows/core/journal.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { until } from '../support/until.ts';
import { CALLS, filesOf, RESULTS, SAMPLES, SHELL_ORDER, UNKNOWN } from './scenario.ts';

/** What may differ from a run that nobody disturbed; everything else must be the same. */
export interface Expected {
  /** `unknown`: the command was interrupted, and the model is told so. `either`: it may have been, but told rightly. */
  readonly shell: 'ok' | 'unknown' | 'either';
  /** Lines its command has written. */
  readonly lines: 0 | 1 | 'at most 1';
  /** Requests the provider may have got again, under the same key. */
  readonly askedAgain: number;
}

export const UNDISTURBED: Expected = { shell: 'ok', lines: 1, askedAgain: 0 };

/** A job whose world is read. */
export interface Worldly {
  readonly name: string;
  readonly session: string;
  readonly workspace: string;
  readonly house: House;
  readonly provider: ScriptedProvider;
}

/** Everything that a run left in the store, in the files, at the provider, in the engine and among the processes. */
export async function readWorld(run: Worldly) {
  const { db } = run.house.database;
  const id = run.session;
  const turns = await db.select().from(turn).where(eq(turn.session, id));
  const calls = await db
    .select()
    .from(call)
    .where(eq(call.turn, `${id}/1`))
    .orderBy(asc(call.step));
  const [owner] = await db.select().from(session).where(eq(session.id, id));
  const chain = await loadChain(db, new ChainCache(), owner?.head ?? '');
  const engine = await until('the end of the workflow', async () => {
    const { status } = await run.house.temporal.workflow.getHandle(turnWorkflowId(`${id}/1`)).describe();
    return status.name !== 'RUNNING' && status.name;
  });
  return {
    turns,
    calls,
    eventSeq: owner?.eventSeq ?? 0,
    effects: await db
      .select()
      .from(effect)
      .where(eq(effect.turn, `${id}/1`)),
    usage: await db.select().from(usage).where(eq(usage.session, id)),
    inputs: await db.select().from(input).where(eq(input.session, id)),
    outbox: await db
      .select()
      .from(outbox)
      .where(eq(outbox.receiver, `session:${id}`)),
    events: await readEvents(db, id, 0, 10_000),
    transcript: chain.map((link) => link.body),
    deltas: await db.select().from(delta).where(eq(delta.stream, id)),
    engine,
    requests: run.provider.requests.filter(({ body }) => lastUserText(body) === run.name),
    files: filesOf(run.workspace),
    orphans: await orphansOf(
      run,
      calls.map(({ key }) => key),
    ),
  };
}

export type World = Awaited<ReturnType<typeof readWorld>>;

/** Compares the world with the one that an undisturbed run leaves. */
export async function compareWorld(run: Worldly, allowed: Expected): Promise<World> {
  const world = await readWorld(run);
  const found = world.calls.some(({ tool, status }) => tool === 'shell' && status === 'ok') ? 'ok' : 'unknown';
  const expected = { ...allowed, shell: allowed.shell === 'either' ? found : allowed.shell } as const;
  compareEnd(world);
  compareFiles(world, expected);
  compareTranscript(world, expected);
  compareLedger(world, expected);
  compareEvents(world);
  compareRequests(world, expected);
  expect(world.orphans, 'processes nobody owns').toEqual([]);
  return world;
}

function compareEnd({ turns, inputs, outbox: box, engine, deltas }: World): void {
  expect(turns).toMatchObject([
    {
      n: 1,
      endReason: 'COMPLETED',
      endDetail: 'final_answer',
      endDecidedBy: 'model',
      recordedBy: 'turn',
      endStep: CALLS.length,
    },
  ]);
  expect(inputs.map(({ status }) => status)).toEqual(['consumed']);
  expect(box.map(({ acknowledgedAt }) => acknowledgedAt !== null)).toEqual([true]);
  expect(engine).toBe('COMPLETED');
  expect(deltas, 'streamed text whose message is stored').toEqual([]);
}

/** A doubled edit or command would stand there twice; a temporary file would be one too many. */
function compareFiles({ files }: World, { lines }: Expected): void {
  const { 'log.txt': log = '', hold: _hold, ...rest } = files;
  expect(rest).toEqual({ 'list.txt': 'begin\nfirst\nsecond\nEND\n', 'made/new.txt': 'written\n' });
  expect(lines === 'at most 1' ? ['', 'line\n'] : ['line\n'.repeat(lines)]).toContain(log);
}

function compareTranscript({ transcript, calls }: World, { shell }: Expected): void {
  const pairs = CALLS.flatMap(() => ['assistant', 'tool_result']);
  expect(transcript.map(({ kind }) => kind)).toEqual(['user', ...pairs, 'assistant']);
  const results = transcript.filter((message) => message.kind === 'tool_result');
  expect(results.map(({ tool }) => tool)).toEqual([...CALLS]);
  const texts = RESULTS.map((text, n) => (n === SHELL_ORDER && shell === 'unknown' ? UNKNOWN : text));
  for (const [n, result] of results.entries()) expect(result.text).toMatch(texts[n] ?? /^$/);
  const statuses = CALLS.map((tool) => (tool === 'shell' ? shell : 'ok'));
  expect(calls.map(({ tool, status }) => [tool, status])).toEqual(CALLS.map((tool, n) => [tool, statuses[n]]));
}

/** The ledger says of each call that acts what the world says. */
function compareLedger({ calls, effects }: World, { shell }: Expected): void {
  const states = calls.flatMap(({ key, tool }) =>
    effects.filter((row) => row.key === key).map((row) => [tool, row.state]),
  );
  const settled = /^(succeeded|settled_done)$/;
  expect(states).toEqual([
    ['edit_file', expect.stringMatching(settled)],
    ['edit_file', expect.stringMatching(settled)],
    ['write_file', expect.stringMatching(settled)],
    ['shell', shell === 'unknown' ? 'unknown' : 'succeeded'],
  ]);
}

export function compareEvents({ events, eventSeq, effects, usage: rows }: World): void {
  const seqs = events.map(({ seq }) => seq);
  expect(seqs).toEqual([...seqs].sort((a, b) => a - b));
  expect(new Set(seqs).size).toBe(seqs.length);
  expect(eventSeq).toBeGreaterThanOrEqual(seqs.at(-1) ?? 0);
  // The end of a batch says how many calls it had, not which: it is counted below.
  const facts = events.filter(({ event }) => event.kind !== 'batch.ended').map(({ event }) => JSON.stringify(event));
  expect(
    facts.filter((fact, n) => facts.indexOf(fact) !== n),
    'events that are there twice',
  ).toEqual([]);

  for (const kind of ['job.submitted', 'turn.opened', 'input.joined', 'turn.ended', 'driver.ended'] as const) {
    expect([kind, of(events, kind).length]).toEqual([kind, 1]);
  }
  for (const [kind, count] of [
    ['call.requested', 6],
    ['call.finished', 6],
    ['batch.ended', 6],
  ] as const) {
    expect([kind, of(events, kind).length]).toEqual([kind, count]);
  }
  const started = of(events, 'sample.started')
    .map(({ attempt }) => attempt)
    .sort();
  expect(
    of(events, 'stream.ended')
      .map(({ attempt }) => attempt)
      .sort(),
  ).toEqual(started);
  expect(rows.map(({ attempt }) => attempt).sort()).toEqual(started);
  expect(rows.filter(({ closedAt }) => closedAt === null)).toEqual([]);
  expect(of(events, 'stream.ended').filter(({ reason }) => reason !== 'lost').length).toBe(SAMPLES);
  compareAttempts(events, effects);
}

/** Each lost attempt is told once and was begun; the ledger holds the last one. */
function compareAttempts(events: readonly RecordedEvent[], effects: World['effects']): void {
  const begun = [...of(events, 'call.started'), ...of(events, 'sample.started')].map(({ attempt }) => attempt);
  const lost = of(events, 'attempt.lost').map(({ attempt }) => attempt);
  expect(new Set(lost).size).toBe(lost.length);
  expect(lost.filter((attempt) => !begun.includes(attempt))).toEqual([]);
  for (const { key, attempt } of effects) {
    expect(of(events, 'call.started').findLast((event) => event.key === key)?.attempt).toBe(attempt);
  }
  const settled = of(events, 'effect.settled').map(({ key, as }) => `${key} ${as}`);
  expect(new Set(settled).size, 'an effect settled twice').toBe(settled.length);
}

function of<K extends JournalEvent['kind']>(events: readonly RecordedEvent[], kind: K) {
  return events
    .map(({ event }) => event)
    .filter((event): event is Extract<JournalEvent, { kind: K }> => event.kind === kind);
}

/** Each sample has one key of its own; one that was lost is asked again with the same key and the same bytes. */
export function compareRequests({ requests, usage: rows }: World, { askedAgain }: Pick<Expected, 'askedAgain'>): void {
  const keys = Array.from({ length: SAMPLES }, (_, step) =>
    requests.filter(({ body }) => countToolResults(body) === step).map(({ headers }) => headers['idempotency-key']),
  );
  expect(keys.map((each) => new Set(each).size)).toEqual(keys.map(() => 1));
  expect(new Set(keys.flat()).size).toBe(SAMPLES);
  expect(requests.length).toBeGreaterThanOrEqual(SAMPLES);
  expect(requests.length).toBeLessThanOrEqual(SAMPLES + askedAgain);
  expect(rows.length).toBeGreaterThanOrEqual(requests.length);
}

/** Processes of a call, by the mark in their environment, and supervisors, by the workspace in their arguments. */
async function orphansOf(run: Worldly, keys: readonly string[]): Promise<string[]> {
  const marked = (await Promise.all(keys.map((key) => processesOf(key)))).flat();
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const supervisors = pids.filter((pid) => {
    const line = commandLine(pid);
    return line.includes('supervisor.js') && line.includes(run.workspace);
  });
  return [...marked.map((pid) => `call ${pid}`), ...supervisors.map((pid) => `supervisor ${pid}`)];
}

function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
