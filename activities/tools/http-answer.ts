import type { Fetched } from '../net/guarded-fetch.ts';
import { failure } from './answer.ts';
import { Capture, show } from './capture.ts';
import type { ToolContext, ToolResult } from './define-tool.ts';
import { fitText } from './text.ts';

/** Kept free in a result for the line with status and type. */
const HEAD_CHARS = 500;
/** Headers that say something about an answer without being one of a hundred. */
const SHOWN = ['content-type', 'location', 'etag', 'retry-after', 'link'] as const;

/** What the model is told of an answer: the status, a few headers, and the body as far as it is text. */
export function answerResult(fetched: Fetched & { kind: 'answered' }, context: ToolContext): ToolResult {
  const { status, headers, body, whole, url } = fetched;
  const capture = new Capture(context.resultChars);
  capture.write(body);
  const shown = show(capture.finish(), context.resultChars - HEAD_CHARS);
  const lines = [
    `HTTP ${status} ${url}`,
    ...SHOWN.flatMap((name) => (headers[name] === undefined ? [] : [`${name}: ${headers[name]}`])),
    ...(whole === 'cut' ? ['[The body is longer; only its beginning was read.]'] : []),
    ...(whole === 'broken' ? ['[The connection broke before the body was complete.]'] : []),
  ];
  return {
    isError: status >= 400,
    text: `${fitText(lines.join('\n'), HEAD_CHARS - 2)}\n\n${shown.text}`,
    note: `HTTP ${status}`,
    ...(shown.output === undefined ? {} : { output: shown.output }),
  };
}

/** A request that is sure to have done nothing. */
export function unsentResult(
  { kind, note, text }: Fetched & { kind: 'refused' | 'never_sent' },
  context: ToolContext,
): ToolResult {
  const stopped = kind === 'never_sent' && context.signal.aborted;
  return { ...failure(text, note, context.resultChars), ...(stopped ? { aborted: 'without_effect' as const } : {}) };
}

/** Thrown where nobody knows whether a request was carried out; its code is a fixed word for the event table. */
export class OutcomeUnknown extends Error {
  readonly code: string;

  constructor(code: string) {
    super('Whether the request was carried out is not known.');
    this.name = 'OutcomeUnknown';
    this.code = code;
  }
}
