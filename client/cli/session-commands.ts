import { SetupError } from '../../worker/setup-error.ts';
import { EXIT } from './exit-code.ts';
import type { Output } from './output.ts';
import { TENANT, whoami } from './ticket.ts';
import { withRuns } from './with-runs.ts';

interface Common {
  readonly config?: string | undefined;
  readonly json?: boolean | undefined;
}

export async function plan(session: string, wanted: 'on' | 'off', options: Common, output: Output): Promise<number> {
  return await withRuns(options.config, async (runs) => {
    const state = await runs.plan(TENANT, session, { plan: wanted === 'on', by: whoami() });
    if (!state) throw new SetupError(`There is no session ${session}; \`pawl show <job>\` names the session of a job.`);
    if (options.json) output.json({ session, ...state });
    else output.line(`${state.changed ? '' : 'It was so already: '}${SAID[wanted]}`);
    return EXIT.ok;
  });
}

const SAID = {
  on: 'The session plans; calls that begin from now on change nothing but PLAN.md.',
  off: 'The session does not plan; its calls may change things again.',
} as const;
