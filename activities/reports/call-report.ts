import type { CallStatus } from '../../workflows/core/tools.ts';
import type { HookEvent } from '../gate/hook-types.ts';
import type { Hooks } from '../gate/hooks.ts';
import type { NewReport } from '../store/reports.ts';

interface ReportedCall {
  readonly session: string;
  readonly turn: string;
  readonly call: { readonly key: string; readonly tool: string };
}

/** What hooks are to be told of a call that came back; null where nobody wants to hear of it. */
export function callReport(
  hooks: Pick<Hooks, 'has'>,
  { session, turn, call, status }: ReportedCall & { readonly status: CallStatus },
): NewReport | null {
  return reportOf(hooks, eventOf(status), `call/${call.key}`, { session, turn, call });
}

function eventOf(status: CallStatus): HookEvent {
  switch (status) {
    case 'ok':
    case 'blocked_on_input':
    case 'blocked_on_event':
      return 'PostToolUse';
    default:
      return 'PostToolUseFailure';
  }
}

/** What hooks are to be told of a call that was denied. `by`: which guard, or a person. */
export function denialReport(hooks: Pick<Hooks, 'has'>, at: ReportedCall, by: string): NewReport | null {
  const report = reportOf(hooks, 'PermissionDenied', `denied/${at.call.key}`, at);
  return report && { ...report, body: { ...report.body, facts: { by } } };
}

function reportOf(
  hooks: Pick<Hooks, 'has'>,
  event: HookEvent,
  id: string,
  { session, turn, call }: ReportedCall,
): NewReport | null {
  if (!hooks.has(event, call.tool)) return null;
  return { id, body: { event, session, turn, call: call.key, tool: call.tool } };
}
