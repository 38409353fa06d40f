import type { Decider } from '../../workflows/core/ends.ts';
import type { JobTurnEnd } from '../job.ts';
import { adviceOf } from './advice.ts';
import type { LayerEnd, LayerEnds } from './facts.ts';
import { goalWords } from './goal-words.ts';
import type { ChainLink } from './report.ts';
import { DECIDERS, signalWords } from './signal-words.ts';

interface Around {
  readonly ends: LayerEnds;
  readonly streams: readonly { readonly step: number; readonly openedAt: Date }[];
  readonly end: JobTurnEnd | null;
  readonly queue: { readonly waiting: number };
  /** What it does now, in words, where it has no end. */
  readonly doing: string | null;
}

/** The layers from the last stream outwards, each with its own end, or how it stands. */
export function chainOf(around: Around): readonly ChainLink[] {
  return [
    streamLink(around),
    batchLink(around.ends.batch),
    turnLink(around),
    driverLink(around),
    goalLink(around.ends),
  ];
}

function streamLink({ ends, streams }: Around): ChainLink {
  const open = streams[streams.length - 1];
  if (open) return none('stream', `step ${open.step} is sampled since ${open.openedAt.toISOString()}, and not closed`);
  if (!ends.stream) return none('stream', 'nothing was sampled');
  const { step, reason, note, failure } = ends.stream.event;
  const why = note ?? failure;
  return linkOf('stream', ends.stream, `step ${step} ended ${reason}${why === null ? '' : ` (${why})`}`);
}

function batchLink(end: LayerEnds['batch']): ChainLink {
  if (!end) return none('batch', 'no batch of calls has ended');
  const { calls, reason, detail } = end.event;
  const count = calls === 1 ? '1 call' : `${calls} calls`;
  return linkOf('batch', end, `${count}, ${reason}${detail === null ? '' : `/${detail}`}`);
}

function turnLink({ end, doing }: Around): ChainLink {
  if (!end) return none('turn', doing ?? 'has not ended');
  const { reason, detail, decidedBy, signal, at } = end;
  return { layer: 'turn', reason, detail, decidedBy, signal: signal.name, at, words: turnWords(end) };
}

/** Why a turn ended, who decided it, on which signal, and where it stood. */
function turnWords(end: JobTurnEnd): string {
  const who = end.by === null ? DECIDERS[end.decidedBy] : `${DECIDERS[end.decidedBy]} (${end.by})`;
  const said = end.why === null ? '' : `, who said “${end.why}”`;
  const recorded = end.recordedBy === 'recovery' ? '; recovery wrote it down' : '';
  const rounds = end.step === 1 ? '1 tool round' : `${end.step} tool rounds`;
  return (
    `${end.reason}/${end.detail}: ${adviceOf(end).means} Decided by ${who}${said}, on ${signalWords(end.signal)}; ` +
    `it was at ${end.phase}, after ${rounds}${recorded}.`
  );
}

function driverLink({ ends, queue }: Around): ChainLink {
  if (queue.waiting > 0) return none('driver', `${queue.waiting} more wait in the queue`);
  return ends.driver ? linkOf('driver', ends.driver, ends.driver.event.reason) : none('driver', 'has not come to rest');
}

function goalLink({ goal }: LayerEnds): ChainLink {
  return goal ? linkOf('goal', goal, goalWords(goal.event)) : none('goal', 'there is none');
}

function linkOf(layer: ChainLink['layer'], { event, at }: LayerEnd, what: string): ChainLink {
  const { reason, detail, signal } = event;
  const decidedBy: Decider = event.decidedBy;
  return { layer, reason, detail, decidedBy, signal, at, words: `${what}, decided by ${DECIDERS[decidedBy]}` };
}

function none(layer: ChainLink['layer'], words: string): ChainLink {
  return { layer, reason: null, detail: null, decidedBy: null, signal: null, at: null, words };
}
