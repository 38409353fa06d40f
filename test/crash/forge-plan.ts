import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { JournalEvent } from '../../workflows/core/journal.ts';
import type { ForgeFault } from '../support/forge.ts';
import { until } from '../support/until.ts';
import { REQUEST_MS, SETTLE_AFTER_MS } from './forge-config.ts';
import type { ForgeRun } from './forge-run.ts';
import type { Boundary } from './kill-at.ts';

/** What happens to the work meanwhile. */
export type Disturbance =
  | { readonly kind: 'none' }
  /** One worker after the other kills itself there; the last one lives. */
  | { readonly kind: 'dies'; readonly at: readonly Boundary[] }
  /** The worker is killed as its request arrives. */
  | { readonly kind: 'killed' }
  /** The same, and another worker is there already. */
  | { readonly kind: 'killed_of_two' }
  | { readonly kind: 'cancelled' }
  /** Temporal is killed so long after the request has arrived; it comes back by itself. */
  | { readonly kind: 'engine_killed'; readonly laterMs: number };

export interface Plan {
  readonly fault: ForgeFault;
  readonly disturbance: Disturbance;
}

const boundary = (when: Boundary['when'], at: Boundary['at']): Boundary => ({ when, at });

export const FAULTS: readonly ForgeFault[] = [
  { kind: 'none' },
  { kind: 'gateway', status: 504, commits: true },
  { kind: 'gateway', status: 502, commits: false },
  { kind: 'gateway', status: 500, commits: true },
  { kind: 'closes', commits: true },
  { kind: 'closes', commits: false },
  // After the tool gave up, so that the first look-up finds nothing.
  { kind: 'late', afterMs: REQUEST_MS + (SETTLE_AFTER_MS - REQUEST_MS) / 4 },
  { kind: 'cut' },
];

export const DISTURBANCES: readonly Disturbance[] = [
  { kind: 'none' },
  { kind: 'killed' },
  { kind: 'killed_of_two' },
  { kind: 'cancelled' },
  { kind: 'engine_killed', laterMs: 0 },
  { kind: 'engine_killed', laterMs: 30 },
  { kind: 'dies', at: [boundary('before', 'startEffect')] },
  { kind: 'dies', at: [boundary('after', 'startEffect')] },
  // Somewhere around the request.
  ...[2, 6, 15, 40].map(
    (laterMs): Disturbance => ({ kind: 'dies', at: [{ when: 'after', at: 'startEffect', laterMs }] }),
  ),
  { kind: 'dies', at: [boundary('before', 'finishCall')] },
  { kind: 'dies', at: [boundary('after', 'finishCall')] },
  { kind: 'dies', at: [boundary('before', 'finishCall'), boundary('after', 'recordLost')] },
  { kind: 'dies', at: [boundary('after', 'startEffect'), boundary('before', 'recordSettled')] },
];

/** Runs the job to its end under a plan, and checks what the forge, the ledger and the events say. */
export async function play(run: ForgeRun, plan: Plan): Promise<void> {
  const { disturbance } = plan;
  run.begin(plan.fault);
  const arrived = () => until('its request arrives', () => run.forge.posts(run.name) > 0, 60_000);
  const [first, ...others] = disturbance.kind === 'dies' ? disturbance.at : [];
  const worker = await run.workers(disturbance.kind === 'killed_of_two' ? 2 : 1);
  if (first) await worker.arm(first);
  await run.submit();
  switch (disturbance.kind) {
    case 'none':
      break;
    case 'dies':
      await worker.died;
      for (const at of others) await (await run.start(at)).died;
      await run.workers();
      break;
    case 'killed':
    case 'killed_of_two':
      await arrived();
      await (await run.holder()).kill();
      await run.workers();
      break;
    case 'cancelled':
      await arrived();
      await run.cancel();
      break;
    case 'engine_killed':
      await arrived();
      await sleep(disturbance.laterMs);
      await run.killEngine();
      break;
  }
  await check(run, plan);
}

export async function check(run: ForgeRun, { fault, disturbance }: Plan): Promise<void> {
  const { turn, call, effect, events } = await run.ended();
  // A second one that was sent too early would be opened now.
  await run.forge.idle(run.name);
  const cancelled = disturbance.kind === 'cancelled' && turn.endReason === 'ABORTED';
  const neverCame = (fault.kind === 'gateway' || fault.kind === 'closes') && !fault.commits;
  const opened = run.forge.pulls(run.name).length;
  // What was asked for and had not arrived when somebody cancelled is not asked for again.
  if (cancelled && neverCame) expect([0, 1]).toContain(opened);
  else expect(opened, 'pull requests at the forge').toBe(1);
  if (!cancelled) expect(turn).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
  expect(call?.status).toBe(opened === 1 ? 'ok' : 'stopped');
  explain(events, effect?.state ?? '', opened);
  expect(of(events, 'call.started').length).toBeGreaterThanOrEqual(run.forge.posts(run.name));
}

/** The events tell of each attempt what became of it. */
function explain(events: readonly JournalEvent[], state: string, opened: number): void {
  const started = of(events, 'call.started').map(({ attempt }) => attempt);
  expect(new Set(started).size).toBe(started.length);
  const settled = of(events, 'effect.settled').map(({ as }) => as);
  const absent = settled.filter((as) => as === 'settled_absent').length;
  if (opened === 0) {
    expect([state, absent]).toEqual(['settled_absent', started.length]);
  } else {
    expect(['succeeded', 'settled_done']).toContain(state);
    expect(settled.includes('settled_done')).toBe(state === 'settled_done');
    expect(absent).toBe(started.length - 1);
  }
  for (const { attempt } of of(events, 'attempt.lost').filter(({ layer }) => layer === 'batch')) {
    expect(started).toContain(attempt);
  }
  expect(of(events, 'call.finished')).toHaveLength(1);
  expect(of(events, 'turn.ended')).toHaveLength(1);
}

export function of<K extends JournalEvent['kind']>(events: readonly JournalEvent[], kind: K) {
  return events.filter((event): event is Extract<JournalEvent, { kind: K }> => event.kind === kind);
}
