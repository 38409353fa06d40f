import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { JobEnd } from '../job.ts';
import type { Runs } from '../runs.ts';
import type { Submission } from '../submit.ts';
import type { Output } from './output.ts';
import { Progress } from './progress.ts';
import { UsageError } from './usage-error.ts';

/** The command line has the data folder, so it is the one tenant that there is. */
export const TENANT = 'default';

export function whoami(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

export type Ticket = Omit<Submission, 'tenant' | 'key' | 'sender'> & { readonly key?: string | undefined };

/** Hands a ticket in. Throws a UsageError that says what is wrong with it. */
export async function handIn(runs: Runs, ticket: Ticket): Promise<{ readonly job: string; readonly isNew: boolean }> {
  if (ticket.text.trim() === '') throw new UsageError('The ticket has no text.');
  const key = ticket.key ?? randomUUID();
  const submitted = await runs.submit({ ...ticket, tenant: TENANT, key, sender: whoami() });
  switch (submitted.kind) {
    case 'accepted':
      return submitted;
    case 'conflict':
      throw new UsageError(`The key ${key} was used for another ticket, job ${submitted.job}: take another key.`);
    case 'unknown_agent':
      throw new UsageError(`There is no agent ${submitted.asked}; known are ${submitted.known.join(', ')}.`);
    case 'budget_refused':
    case 'schema_refused':
    case 'workspace_refused':
      throw new UsageError(submitted.why);
  }
}

/** Shows a job as it runs, until it comes to rest; null if interrupted before that. */
export async function watch(runs: Runs, job: string, output: Output, signal: AbortSignal): Promise<JobEnd | null> {
  const progress = new Progress();
  const events = runs.events(TENANT, job, { signal });
  for (;;) {
    const { done, value } = await events.next();
    if (done) return value;
    output.write(progress.feed(value));
  }
}
