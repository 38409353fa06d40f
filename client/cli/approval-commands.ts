import { SetupError } from '../../worker/setup-error.ts';
import type { ApprovalReply, OpenApproval } from '../approvals.ts';
import type { OutsideEvent, ReportedEvent } from '../outside-events.ts';
import { EXIT } from './exit-code.ts';
import { argumentSummary, duration, printable } from './format.ts';
import type { Output } from './output.ts';
import { TENANT, whoami } from './ticket.ts';
import { UsageError } from './usage-error.ts';
import { withRuns } from './with-runs.ts';

interface Common {
  readonly config?: string | undefined;
  readonly json?: boolean | undefined;
}

export async function approvals(options: Common, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const open = await runs.approvals(TENANT);
    for (const each of open) {
      if (options.json) output.json(each);
      else output.line(approvalLine(each, Date.now()));
    }
    if (open.length === 0 && !options.json) output.note('Nothing waits for a person.');
    return EXIT.ok;
  });
}

const SUMMARY_WIDTH = 100;

function approvalLine({ id, asked, turn, expiresAt }: OpenApproval, nowMs: number): string {
  const what = argumentSummary(asked.arguments, SUMMARY_WIDTH);
  const until = expiresAt === null ? 'which ended over it' : `for another ${duration(Date.parse(expiresAt) - nowMs)}`;
  const how = asked.kind === 'outcome' ? '\n  it ran: did it take effect? answer with `pawl outcome`' : '';
  return `${id}  ${printable(asked.tool)} ${what}\n  asked by ${turn}, ${until}${how}`;
}

const STALE = {
  expired: 'its time is over, and the agent was told so; an outcome can be answered again once its turn has ended',
  turn_ended: 'its turn has ended',
  archived: 'its session is archived; `pawl unarchive` it first',
  agent_ended: 'the sub-agent that asked has ended and hears nothing more; whoever started it was told of its end',
  settled: 'it has become known meanwhile what became of the call',
  moved_on: 'the session has gone on without it; the agent may ask again',
} as const;

const DONE = {
  approved: 'Approved; the call runs.',
  rejected: 'Rejected; the call and what follows it do not run, and the turn ends.',
  cancelled: 'Cancelled; the call and what follows it do not run, and the turn ends.',
  message: 'Told; the call does not run, and the turn goes on with the message.',
  happened: 'Noted: it took effect. The work goes on with that.',
  absent: 'Noted: it did not take effect. The work goes on with that.',
  again: 'Noted: it may be made once more.',
} as const;

export async function decide(
  approval: string,
  reply: Omit<ApprovalReply, 'by'>,
  options: Common,
  output: Output,
): Promise<number> {
  if (reply.editedArguments !== undefined) requireJson(reply.editedArguments);
  return await withRuns(options.config, async (runs) => {
    const answered = await runs.answer(TENANT, approval, { ...reply, by: whoami() });
    if (!answered) throw new UsageError(`There is no approval ${approval}; \`pawl approvals\` lists the open ones.`);
    if (answered.kind === 'misfit') throw new UsageError(MISFIT[answered.asks === 'outcome' ? 'outcome' : 'other']);
    if (answered.kind === 'stale') {
      throw new SetupError(`Approval ${approval} can't be answered any more: ${STALE[answered.why]}.`);
    }
    if (options.json) output.json({ approval, ...answered });
    else if (answered.kind === 'recorded') output.line(DONE[reply.answer]);
    else
      output.line(
        `It was ${answered.answer} before${answered.by ? ` by ${printable(answered.by)}` : ''}; that stands.`,
      );
    return EXIT.ok;
  });
}

/** Reports an event to a session, or to that of a job. */
export async function report(
  of: string,
  event: Omit<OutsideEvent, 'by'>,
  options: Common,
  output: Output,
): Promise<number> {
  if (event.name.trim() === '') throw new SetupError('The event has no name; say the one that the agent waits for.');
  return await withRuns(options.config, async (runs) => {
    const reported = await runs.report(TENANT, of, { ...event, by: whoami() });
    if (!reported) throw new SetupError(`There is no job or session ${of}; \`pawl ps\` lists what is open.`);
    if (options.json) output.json(reported);
    else output.line(reportLine(reported));
    return EXIT.ok;
  });
}

function reportLine({ isNew, waits, goal }: ReportedEvent): string {
  if (!isNew) return 'This id had been reported before; nothing has changed.';
  if (goal !== null) return `The session’s goal is told: \`pawl goal show ${goal}\` says whether it waited for that.`;
  if (waits === 0) return 'Nothing waits for it now; it is kept for the rest of the running turn.';
  return waits === 1 ? 'It ends one wait.' : `It ends ${waits} waits.`;
}

const MISFIT = {
  outcome: 'That call ran, and nobody knows what became of it: use `pawl outcome <id> happened|absent|again`.',
  other: 'That call has not run: use `pawl approve` or `pawl reject`.',
} as const;

function requireJson(text: string): void {
  try {
    JSON.parse(text);
  } catch {
    throw new UsageError('The edited arguments are not JSON; quote them for your shell.');
  }
}
