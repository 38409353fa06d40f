import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import type { HookFailure } from '../gate/hook-types.ts';
import { type ClaimedReport, claimReports, closeReport } from '../store/reports.ts';
import { factsOf } from './facts.ts';
import type { Reporter } from './port.ts';

type ReporterDeps = Pick<Deps, 'database' | 'chains' | 'hooks' | 'notifier' | 'log'>;

export function createReporter(deps: ReporterDeps): Reporter {
  const { atOnce, rounds } = POLICY.reports;
  const running = new Set<Promise<void>>();
  let closed = false;
  const round = async () => {
    try {
      for (let told: number = atOnce; told === atOnce && !closed; ) told = await tellSome(deps, atOnce);
    } catch (error) {
      // The rows stay; the next look finds them.
      deps.log.warn({ error: error instanceof Error ? error.name : 'unknown' }, 'hooks could not be told');
    }
  };
  return {
    wake() {
      if (closed || !deps.hooks.hasReports || running.size >= rounds) return;
      const mine: Promise<void> = round().finally(() => running.delete(mine));
      running.add(mine);
    },
    async close() {
      closed = true;
      await Promise.all(running);
    },
  };
}

async function tellSome(deps: ReporterDeps, limit: number): Promise<number> {
  const claimed = await claimReports(deps.database.db, limit, POLICY.reports.leaseMs);
  await Promise.all(claimed.map((report) => tell(deps, report)));
  return claimed.length;
}

async function tell(deps: ReporterDeps, report: ClaimedReport): Promise<void> {
  const { event, session } = report.body;
  const failures = await deps.hooks.report(event, await factsOf(deps, report));
  await closeReport(
    deps.database.db,
    report,
    failures.map((failure, n) => failedEvent(report, failure, n)),
  );
  // A session of its own stream is told at once; what belongs to another one, by its poll.
  if (failures.length > 0) deps.notifier.moved(session);
}

function failedEvent({ id, body }: ClaimedReport, failure: HookFailure, n: number) {
  const layer = body.call !== undefined ? 'batch' : body.turn !== null ? 'turn' : 'driver';
  return {
    key: `hook/${id}/${n}`,
    turn: body.turn,
    event: { kind: 'hook.failed', layer, ...failure },
  } as const;
}
