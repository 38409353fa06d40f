import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { supervise } from '../process/supervise.ts';
import { checkName } from '../store/check-name.ts';
import { agentOf } from '../store/definitions.ts';
import type { GoalPlace } from '../store/goals.ts';
import { newId } from '../store/ids.ts';
import type { CommandCheck, GoalCheck, ToolCheck } from '../store/schema.ts';
import { show } from '../tools/capture.ts';
import { type Finished, runProcess } from '../tools/run-process.ts';
import { bash } from '../tools/shell.ts';
import { fitText } from '../tools/text.ts';
import { findTool } from '../turn/find-tool.ts';
import {
  type Attempted,
  attemptRun,
  isStopped,
  noteOf,
  type RunnableTool,
  stopSignal,
  toolContext,
} from '../turn/tool-attempt.ts';
import { hasTool, isExpected, usableCheck } from './tool-check.ts';

export interface Ran {
  readonly passed: boolean;
  readonly text: string;
}

const NAME_CHARS = 400;

/** One check of a goal. `key` names this run of it, the same for every attempt. */
export async function runCheck(deps: Deps, place: GoalPlace, check: GoalCheck, key: string): Promise<Ran> {
  const { passed, how, said } =
    'command' in check ? await runCommand(deps, place, check, key) : await callTool(deps, place, check, key);
  const shown = fitText(said, POLICY.goal.checks.outputChars);
  return {
    passed,
    text: `Check \`${fitText(checkName(check), NAME_CHARS)}\`: ${how}.${shown.trim() === '' ? '' : `\n${shown}`}`,
  };
}

interface Found {
  readonly passed: boolean;
  readonly how: string;
  readonly said: string;
}

async function runCommand(deps: Deps, place: GoalPlace, check: CommandCheck, key: string): Promise<Found> {
  const { outputChars } = POLICY.goal.checks;
  const { cancellationSignal: signal } = Context.current();
  const finished = await runProcess(
    { ...bash(check.command), timeLimitMs: check.timeoutSeconds * 1_000, gentle: true },
    {
      workspace: place.workspacePath,
      signal,
      idempotencyKey: key,
      details: null,
      spawn: supervise,
      resultChars: outputChars,
      maskStream: () => deps.masker.stream(),
    },
  );
  if (finished.stopped === 'aborted') giveUp();
  return {
    passed: finished.stopped === null && finished.exit.code === 0,
    how: howItEnded(finished, check),
    said: show(finished.captured, outputChars).text,
  };
}

function howItEnded({ stopped, exit }: Finished, { timeoutSeconds }: CommandCheck): string {
  switch (stopped) {
    case 'timeout':
      return `not finished within ${timeoutSeconds} s`;
    case 'output':
      return 'ended because it wrote too much';
    case 'aborted':
      return 'stopped';
    case null:
      if (exit.code === 0) return 'passed (exit code 0)';
      return exit.code === null ? `ended by ${exit.signal ?? 'a signal'}` : `failed with exit code ${exit.code}`;
  }
}

/** The agent, and the tool, may have changed since the goal was made: both are looked at again. */
async function callTool(deps: Deps, place: GoalPlace, check: ToolCheck, key: string): Promise<Found> {
  const agent = await agentOf(deps.database.db, place.agent);
  const usable = hasTool(agent, check) ?? usableCheck(check, await findTool(deps, check.tool));
  if (!usable.ok) return { passed: false, how: 'it can’t be called', said: usable.why };
  const timeLimitMs = Math.min(check.timeoutSeconds * 1_000, usable.tool.timeLimitMs);
  const at: RunnableTool = {
    deps,
    owner: { workspacePath: place.workspacePath, tenant: place.row.tenant, session: place.row.session },
    attempt: newId('att'),
    call: { key },
    tool: { ...usable.tool, timeLimitMs },
    args: usable.args,
    superseded: new AbortController().signal,
  };
  const attempted = await attempt(at);
  if (isStopped(at)) giveUp();
  return foundBy(check, attempted, timeLimitMs);
}

/** A check that was stopped, by a worker that leaves or by an order, has found nothing out. */
function giveUp(): never {
  throw ApplicationFailure.retryable('The check was stopped; it is made again if it is wanted.', 'attempt.given_up');
}

async function attempt(at: RunnableTool): Promise<Attempted> {
  try {
    const details = (await at.tool.prepare?.(at.args, toolContext(at, stopSignal(at), null, null))) ?? null;
    return await attemptRun(at, details, null);
  } catch (error) {
    return { kind: 'threw', note: noteOf(error) };
  }
}

function foundBy({ expect }: ToolCheck, attempted: Attempted, timeLimitMs: number): Found {
  switch (attempted.kind) {
    case 'threw':
      return { passed: false, how: 'failed', said: attempted.note };
    case 'timed_out':
      return { passed: false, how: `not finished within ${timeLimitMs / 1_000} s`, said: '' };
    case 'result': {
      const { isError, text, output } = attempted.result;
      if (isError) return { passed: false, how: 'failed', said: text };
      if (expect === undefined) return { passed: true, how: 'passed', said: text };
      // The text may be only a part of the output.
      const passed = isExpected(expect, text) || (output !== undefined && isExpected(expect, output.toString()));
      return { passed, how: passed ? 'passed' : 'the result is not the expected one', said: text };
    }
  }
}
