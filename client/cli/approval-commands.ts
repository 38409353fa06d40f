import { SetupError } from '../../worker/setup-error.ts';
import type { ApprovalReply, OpenApproval } from '../approvals.ts';
import { EXIT } from './exit-code.ts';
import { argumentSummary, duration, printable } from './format.ts';
import type { Output } from './output.ts';
import { TENANT, whoami } from './ticket.ts';
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
  return `${id}  ${printable(asked.tool)} ${what}\n  asked by ${turn}, for another ${duration(Date.parse(expiresAt) - nowMs)}`;
}

const DONE = {
  approved: 'Approved; the call runs.',
  rejected: 'Rejected; the call and what follows it do not run, and the turn ends.',
  cancelled: 'Cancelled; the call and what follows it do not run, and the turn ends.',
  message: 'Told; the call does not run, and the turn goes on with the message.',
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
    if (!answered) throw new SetupError(`There is no approval ${approval}; \`pawl approvals\` lists the open ones.`);
    if (answered.kind === 'stale') {
      const why = answered.why === 'expired' ? 'its time is over' : 'its turn has ended';
      throw new SetupError(`Approval ${approval} can't be answered any more: ${why}.`);
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

function requireJson(text: string): void {
  try {
    JSON.parse(text);
  } catch {
    throw new SetupError('The edited arguments are not JSON; quote them for your shell.');
  }
}
