import { Context } from '@temporalio/activity';
import type {
  CompactRequest,
  DecisionRequest,
  EndTurnRequest,
  GateRequest,
  WaitRequest,
  RunIdentity,
  RunToolRequest,
  SampleRequest,
  StopGateRequest,
  UndoRequest,
} from '../workflows/core/requests.ts';
import type { Delayed } from '../workflows/core/delayed.ts';
import { stopAgents } from './agents/cascade.ts';
import type { Deps } from './deps.ts';
import { toFailure } from './failures.ts';
import { checkGoal, type JudgedTurnRequest } from './goal/check-goal.ts';
import { directGoal, type DirectGoalRequest } from './goal/direct-goal.ts';
import { fireWake, type FireRequest } from './goal/fire-wake.ts';
import { goalStopGate } from './goal/goal-stop-gate.ts';
import { doubtGoal, type DoubtGoalRequest, judgeGoal, type JudgeGoalRequest } from './goal/judge-goal.ts';
import { type GoalLookRequest, loadGoal, lookGoal } from './goal/look-goal.ts';
import { recordGoal, type RecordGoalRequest } from './goal/record-goal.ts';
import { awaySoFar, beating } from './heartbeat.ts';
import { recoverTurn } from './recovery/recover-turn.ts';
import { sweep } from './recovery/sweep.ts';
import { type AdvanceRequest, advanceSession } from './session/advance-session.ts';
import { cancelTurnOfSession, hasEnded } from './session/cancel-turn.ts';
import { newId } from './store/ids.ts';
import { compact } from './turn/compact.ts';
import { endTurn } from './turn/end-turn.ts';
import { gate } from './turn/gate-call.ts';
import { lookAtWait } from './turn/look-at-wait.ts';
import { runTool } from './turn/run-tool.ts';
import { sample } from './turn/sample.ts';
import { settleApproval } from './turn/settle-approval.ts';
import { stopGate } from './turn/stop-gate.ts';
import { undoCall } from './turn/undo-call.ts';

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
  /** Work that may take long: when nobody was there for it is told with what it comes back with. */
  const long = <A extends readonly unknown[], R>(name: string, activity: (deps: Deps, ...args: A) => Promise<R>) =>
    act<A, R | Delayed<R>>(name, async (given, ...args) => {
      const away = awaySoFar();
      const came = await activity(given, ...args);
      return away.length > 0 ? { kind: 'delayed', away, came } : came;
    });
  /** Work without an attempt of its own; it beats only if it takes long, so that no slow helper counts as a dead worker. */
  const short = <A extends readonly unknown[], R>(name: string, activity: (deps: Deps, ...args: A) => Promise<R>) =>
    act<A, R>(name, (given, ...args) => beating(newId('att'), () => activity(given, ...args)));
  return {
    sample: long<[SampleRequest], Awaited<ReturnType<typeof sample>>>('sample', sample),
    compact: long<[CompactRequest], Awaited<ReturnType<typeof compact>>>('compact', compact),
    runTool: long<[RunToolRequest], Awaited<ReturnType<typeof runTool>>>('runTool', runTool),
    gate: short<[GateRequest], Awaited<ReturnType<typeof gate>>>('gate', gate),
    settleApproval: short<[DecisionRequest], Awaited<ReturnType<typeof settleApproval>>>(
      'settleApproval',
      settleApproval,
    ),
    stopGate: short<[StopGateRequest], Awaited<ReturnType<typeof stopGate>>>('stopGate', stopGate),
    undoCall: short<[UndoRequest], Awaited<ReturnType<typeof undoCall>>>('undoCall', undoCall),
    lookAtWait: short<[WaitRequest], Awaited<ReturnType<typeof lookAtWait>>>('lookAtWait', lookAtWait),
    stopAgents: short<[RunIdentity], void>('stopAgents', stopAgents),
    endTurn: short<[EndTurnRequest], void>('endTurn', endTurn),
    advanceSession: short<[AdvanceRequest], Awaited<ReturnType<typeof advanceSession>>>(
      'advanceSession',
      advanceSession,
    ),
    cancelTurnOfSession: short('cancelTurnOfSession', cancelTurnOfSession),
    hasEnded: short<[string], boolean>('hasEnded', hasEnded),
    loadGoal: short<[string], Awaited<ReturnType<typeof loadGoal>>>('loadGoal', loadGoal),
    lookGoal: short<[GoalLookRequest], Awaited<ReturnType<typeof lookGoal>>>('lookGoal', lookGoal),
    recordGoal: short<[RecordGoalRequest], void>('recordGoal', recordGoal),
    directGoal: short<[DirectGoalRequest], Awaited<ReturnType<typeof directGoal>>>('directGoal', directGoal),
    fireWake: short<[FireRequest], void>('fireWake', fireWake),
    checkGoal: short<[JudgedTurnRequest], Awaited<ReturnType<typeof checkGoal>>>('checkGoal', checkGoal),
    judgeGoal: short<[JudgeGoalRequest], Awaited<ReturnType<typeof judgeGoal>>>('judgeGoal', judgeGoal),
    doubtGoal: short<[DoubtGoalRequest], Awaited<ReturnType<typeof doubtGoal>>>('doubtGoal', doubtGoal),
    goalStopGate: short<[JudgedTurnRequest], Awaited<ReturnType<typeof goalStopGate>>>('goalStopGate', goalStopGate),
    recoverTurn: short<[string], Awaited<ReturnType<typeof recoverTurn>>>('recoverTurn', recoverTurn),
    sweep: short<[string | null], Awaited<ReturnType<typeof sweep>>>('sweep', sweep),
  };
}

export type Activities = ReturnType<typeof createActivities>;
