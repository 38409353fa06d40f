import type { Message } from '../../workflows/core/transcript.ts';
import type { AnsweredWait, InputRow } from '../store/inputs.ts';
import type { Asked } from '../store/schema.ts';
import { fitText } from '../tools/text.ts';
import { CUT_TEXTS } from './results.ts';

const SHOWN_CHARS = 200;

/** The message that an input becomes. */
export function inputMessage(row: InputRow): Message {
  const { id, kind, continues } = row;
  const message = { kind: 'user', text: inputText(row), input: id, source: kind } as const;
  return continues === null ? message : { ...message, continues };
}

/** How an input reads to the model: as it was written, but an answer that comes after its turn names what waited. */
function inputText({ kind, body, answers }: InputRow): string {
  if (!answers || kind !== 'call_back') return body;
  const { asked } = answers.approval;
  switch (asked.kind) {
    case 'permission':
      return aboutCall(answers, body);
    case 'question':
      return aboutWait(answers, body, `your question ${quoted(asked)}`, 'has been answered');
    case 'event':
      return aboutWait(answers, body, `the event ${quoted(asked)}`, 'which you waited for has been reported');
    case 'outcome':
      return aboutOutcome(answers, body);
  }
}

function aboutWait({ approval }: AnsweredWait, body: string, what: string, happened: string): string {
  switch (approval.answer) {
    case 'message':
      return `Meanwhile ${what} ${happened}${by(approval)}${body === '' ? '.' : `:\n${body}`}`;
    case 'expired':
      return `Nothing has come about ${what} in all this time; do not wait for it any longer.`;
    default:
      return `About ${what} nothing will come: it was ${approval.answer}${by(approval)}.`;
  }
}

function aboutCall(answers: AnsweredWait, body: string): string {
  const { approval } = answers;
  const what = nameOf(approval.asked);
  switch (approval.answer) {
    case 'approved':
      return `${what} was approved${by(approval)}. ${outcomeOf(answers)}`;
    case 'message':
      if (body === '') return `${what} was rejected${by(approval)}. It has not run, and will not.`;
      return `${what} was not approved and has not run. Instead${by(approval)}:\n${body}`;
    case 'expired':
      return `${what} was not approved by anybody in all this time. It has not run, and will not.`;
    default:
      return `${what} was ${approval.answer}${by(approval)}. It has not run, and will not.`;
  }
}

/** What a person says of a call whose outcome was not known when its turn ended. */
function aboutOutcome({ approval }: AnsweredWait, body: string): string {
  const { tool, arguments: args } = approval.asked;
  const what = `About the call of ${tool} (${fitText(args, SHOWN_CHARS)}), whose outcome was not known`;
  const told = `${what}: ${OUTCOMES[approval.answer ?? ''] ?? 'it is still not known.'}`;
  return body === '' ? told : `${told} They add: ${body}`;
}

const OUTCOMES: Readonly<Record<string, string>> = {
  happened: 'a person looked and says that it took effect. Do not repeat it; go on.',
  absent: 'a person looked and says that it did not take effect. Make it again if it is still needed, and go on.',
  again: 'it is still not known, and a person allows you to make it once more. Then go on.',
};

/** The tool's output comes last: nothing that stands in it can pass for a word of ours behind it. */
function outcomeOf({ call, begun }: AnsweredWait): string {
  const { status, result } = call;
  if (status === 'blocked_on_approval')
    return 'But the work had gone on without it, so it has not run. Make the call again if it is still needed.';
  if (status === null) return begun ? CUT_TEXTS.unknown : 'But the turn was stopped before it began. It had no effect.';
  if (status === 'denied') return `But it has not run: ${result ?? ''}`;
  const kept = call.blob === null ? '' : ` The whole output is kept: read_output, id ${call.blob}.`;
  const how = status === 'ok' ? 'It has been made now' : 'It has been tried now, and did not succeed';
  return `${how}.${kept} All that follows is what the tool returned:\n${result ?? ''}`;
}

function nameOf({ tool, subject, arguments: args }: Asked): string {
  return `The call of ${tool} that waited for approval (${fitText(subject ?? args, SHOWN_CHARS)})`;
}

function quoted({ subject }: Asked): string {
  return `"${fitText(subject ?? '', SHOWN_CHARS)}"`;
}

function by({ answeredBy }: AnsweredWait['approval']): string {
  return answeredBy === null ? '' : ` by ${fitText(answeredBy, SHOWN_CHARS)}`;
}
