import { isOfAgent } from '../../activities/store/sub-agents.ts';
import type { CallStatus } from '../../workflows/core/tools.ts';
import type { RunEvent } from '../follow.ts';
import type { TextEvent } from '../hydrate.ts';
import type { TextDelta } from '../live-attempts.ts';
import { argumentSummary, duration, oneLine, printable } from './format.ts';

const MARKS: Readonly<Record<CallStatus, string>> = {
  ok: '✓',
  error: '✗',
  not_started: '·',
  stopped: '✗',
  unknown: '?',
  unknown_ends_turn: '?',
  denied: '⊘',
  fused: '·',
  blocked_on_approval: '…',
  blocked_on_input: '…',
  blocked_on_event: '…',
};

const UNDONE = {
  undone: 'what that call had done was taken back',
  failed: 'what that call had done could not be taken back',
  unknown: 'whether what that call had done was taken back is not known',
} as const;

const ARGUMENT_WIDTH = 60;
const NOTE_WIDTH = 80;

/** Turns the events of a job into what a terminal shows, piece by piece; it writes nothing itself. */
export class Progress {
  /** What of each attempt's text is on the screen. */
  readonly #shown = new Map<string, string>();
  /** When each running call began, ms since the epoch. */
  readonly #began = new Map<string, number>();
  #midLine = false;

  /** The text to be written for this item; empty for what does not show. */
  feed(item: RunEvent): string {
    return item.type === 'delta' ? this.#delta(item) : this.#event(item);
  }

  #delta({ channel, attempt, chunk }: TextDelta): string {
    if (channel !== 'text') return '';
    const before = this.#shown.get(attempt);
    this.#shown.set(attempt, (before ?? '') + chunk);
    const text = printable(chunk);
    const start = before === undefined ? this.#freshLine() : '';
    if (text !== '') this.#midLine = !text.endsWith('\n');
    return start + text;
  }

  #event({ event: recorded, text, call }: TextEvent): string {
    const { event } = recorded;
    if (recorded.turn !== null && isOfAgent(recorded.turn) && !event.kind.startsWith('agent.')) return '';
    switch (event.kind) {
      case 'stream.ended': {
        if (text !== null) return this.#message(event.attempt, text);
        const fault = event.failure ?? (event.reason === 'stalled' ? 'stalled' : null);
        return this.#drop(event.attempt) + (fault === null ? '' : this.#line(`  ✗ no reply: ${fault}`));
      }
      // Readers have no start of their own.
      case 'call.requested':
      case 'call.started':
        this.#began.set(event.key, Date.parse(recorded.at));
        return '';
      case 'call.finished': {
        const began = this.#began.get(event.key);
        const took = began === undefined ? '' : `  ${duration(Date.parse(recorded.at) - began)}`;
        const about = argumentSummary(call?.arguments ?? '', ARGUMENT_WIDTH);
        const note = event.status === 'ok' || event.note === null ? '' : `  ${oneLine(event.note, NOTE_WIDTH)}`;
        return this.#line(`  ${MARKS[event.status]} ${oneLine(event.tool, 40)} ${about}`.trimEnd() + took + note);
      }
      case 'agent.started':
        return this.#line(`  ⇣ ${event.name} (${event.agent}) begins`);
      case 'agent.ended':
        return this.#line(`  ⇡ ${event.name} (${event.agent}) ended ${event.reason}/${event.detail}`);
      case 'effect.settled':
        return event.as === 'unknown' ? this.#line('  ? what that call did to the world is not known') : '';
      case 'effect.asked':
        return this.#line(`  ? a person is asked what became of that call: pawl outcome ${event.approval} …`);
      case 'effect.undone':
        return this.#line(`  ↶ ${UNDONE[event.as]}`);
      case 'attempt.lost':
        return this.#line(
          `  ↻ ${event.layer === 'stream' ? 'a model request' : 'an attempt of a call'} was lost with its worker`,
        );
      case 'attempt.discarded':
        return this.#drop(event.attempt);
      case 'model.switched':
        return this.#line(
          `  ⇄ ${oneLine(event.from, 40)} is overloaded: ${oneLine(event.to, 40)} answers for the rest of this turn`,
        );
      case 'context.compacted':
        return this.#line(`  ⋯ the conversation became too long: a summary stands for ${event.replaced} messages`);
      case 'job.continues':
        return this.#line(`  ↻ a machine ended this turn: the job goes on by itself, time ${event.n} of ${event.of}`);
      case 'cancel.requested':
        return this.#line('  ! cancel requested');
      case 'input.dropped':
        return this.#line(
          `  ! an input was dropped: ${event.status}${event.by === null ? '' : ` by ${oneLine(event.by, 40)}`}`,
        );
      case 'stop_gate.answered':
        return event.answer === 'block' ? this.#line(`  ! not finished yet: ${oneLine(text ?? '', NOTE_WIDTH)}`) : '';
      default:
        return '';
    }
  }

  /** The message itself has what its pieces lacked: the last ones are not always sent. */
  #message(attempt: string, text: string): string {
    const shown = this.#shown.get(attempt);
    this.#shown.delete(attempt);
    if (text === '') return '';
    if (shown !== undefined && text.startsWith(shown)) {
      const rest = printable(text.slice(shown.length));
      if (rest !== '') this.#midLine = !rest.endsWith('\n');
      return rest + this.#freshLine();
    }
    return this.#line(printable(text).replace(/\n+$/, ''));
  }

  #drop(attempt: string): string {
    return this.#shown.delete(attempt) ? this.#line('  ↻ the text above was not kept') : '';
  }

  #line(line: string): string {
    return `${this.#freshLine()}${line}\n`;
  }

  #freshLine(): string {
    if (!this.#midLine) return '';
    this.#midLine = false;
    return '\n';
  }
}
