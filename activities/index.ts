import { Context } from '@temporalio/activity';
import type {
  DecisionRequest,
  EndTurnRequest,
  GateRequest,
  WaitRequest,
  RunToolRequest,
  SampleRequest,
} from '../workflows/core/requests.ts';
import type { Deps } from './deps.ts';
import { toFailure } from './failures.ts';
import { beating } from './heartbeat.ts';
import { recoverTurn } from './recovery/recover-turn.ts';
import { sweep } from './recovery/sweep.ts';
import { type AdvanceRequest, advanceSession } from './session/advance-session.ts';
import { cancelTurnOfSession, hasEnded } from './session/cancel-turn.ts';
import { newId } from './store/ids.ts';
import { endTurn } from './turn/end-turn.ts';
import { gate } from './turn/gate-call.ts';
import { lookAtWait } from './turn/look-at-wait.ts';
import { runTool } from './turn/run-tool.ts';
import { sample } from './turn/sample.ts';
import { settleApproval } from './turn/settle-approval.ts';

/** Everything that touches the world, bound to what this worker reaches it through. */
export function createActivities(deps: Deps) {
  const act =
    <A extends readonly unknown[], R>(name: string, activity: (deps: Deps, ...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      try {
        return await activity(deps, ...args);
      } catch (error) {
        throw toFailure(error, { activity: name, attempt: Context.current().info.attempt }, deps.log);
      }
    };
  return {
    sample: act<[SampleRequest], Awaited<ReturnType<typeof sample>>>('sample', sample),
    runTool: act<[RunToolRequest], Awaited<ReturnType<typeof runTool>>>('runTool', runTool),
    gate: act<[GateRequest], Awaited<ReturnType<typeof gate>>>('gate', gate),
    settleApproval: act<[DecisionRequest], Awaited<ReturnType<typeof settleApproval>>>(
      'settleApproval',
      settleApproval,
    ),
    lookAtWait: act<[WaitRequest], Awaited<ReturnType<typeof lookAtWait>>>('lookAtWait', lookAtWait),
    endTurn: act<[EndTurnRequest], void>('endTurn', endTurn),
    advanceSession: act<[AdvanceRequest], Awaited<ReturnType<typeof advanceSession>>>('advanceSession', advanceSession),
    cancelTurnOfSession: act('cancelTurnOfSession', cancelTurnOfSession),
    hasEnded: act<[string], boolean>('hasEnded', hasEnded),
    recoverTurn: act<[string], Awaited<ReturnType<typeof recoverTurn>>>('recoverTurn', (given, id) =>
      beating(newId('att'), () => recoverTurn(given, id)),
    ),
    sweep: act<[], Awaited<ReturnType<typeof sweep>>>('sweep', (given) => beating(newId('att'), () => sweep(given))),
  };
}

export type Activities = ReturnType<typeof createActivities>;
