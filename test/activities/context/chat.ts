import fc from 'fast-check';
import { chainOn, type Link } from '../../../activities/store/transcript.ts';
import { estimateMessage } from '../../../activities/model/estimate.ts';
import { DEFAULT_LIMITS } from '../../../workflows/core/policy.ts';
import type { StoredAgent, StoredTool } from '../../../activities/store/schema.ts';
import type { Message } from '../../../workflows/core/transcript.ts';

export const AGENT: StoredAgent = {
  name: 'tester',
  provider: 'p',
  model: 'm',
  instructions: 'You are tested.',
  tools: [],
  attended: false,
  limits: DEFAULT_LIMITS,
};

const tool = (name: string, effect: StoredTool['effect']): StoredTool => ({
  name,
  description: name,
  parameters: {},
  effect,
  runs: 'activity',
});
/** One that can be called again, and one that can't. */
export const TOOLS = [tool('read', 'none'), tool('shell', 'once')];

type Assistant = Message & { kind: 'assistant' };

export const user = (text: string, source: 'prompt' | 'steer' | 'directive' = 'prompt'): Message => ({
  kind: 'user',
  text,
  input: text.slice(0, 20),
  source,
});

export const said = (text: string, change: Partial<Assistant> = {}): Assistant => ({
  kind: 'assistant',
  text,
  reasoning: '',
  calls: [],
  provider: 'p',
  model: 'm',
  extra: {},
  cut: false,
  ...change,
});

let ids = 0;
export const calling = (names: readonly string[], change: Partial<Assistant> = {}): Assistant =>
  said('', {
    calls: names.map((name) => ({ id: `c${(ids += 1)}`, name, arguments: '{"path":"a.txt"}' })),
    extra: { reasoning_content: 'because' },
    ...change,
  });

export const result = (ordinal: number, name: string, text: string): Message => ({
  kind: 'tool_result',
  ordinal,
  callId: '',
  tool: name,
  text,
  isError: false,
  blob: null,
});

/** A round of one call, with so much output. */
export const round = (name: string, chars: number, change: Partial<Assistant> = {}): Message[] => [
  calling([name], change),
  result(0, name, `first line of ${name}\n${'x'.repeat(chars)}`),
];

export const directive = (text: string): Message => ({ kind: 'directive', text, goal: 'g', round: text });

export function linksOf(bodies: readonly Message[], root = 'root'): readonly Link[] {
  return chainOn({ hash: root, depth: 0 }, bodies, estimateMessage);
}

/** Any conversation, also with calls that have no result and results that have no call. */
export const conversations = fc
  .array(
    fc.oneof(
      { weight: 2, arbitrary: fc.constantFrom(user('more', 'steer'), directive('on'), user('go on', 'directive')) },
      { weight: 1, arbitrary: fc.constant(said('An answer.')) },
      {
        weight: 8,
        arbitrary: fc.record({
          names: fc.array(fc.constantFrom('read', 'shell'), { minLength: 1, maxLength: 3 }),
          sizes: fc.array(fc.constantFrom(0, 150, 2_000, 30_000), { minLength: 3, maxLength: 3 }),
          answered: fc.constantFrom(3, 3, 3, 3, 3, 3, 1, 0),
          measured: fc.option(fc.integer({ min: 10, max: 60_000 }), { nil: undefined }),
        }),
      },
    ),
    { maxLength: 60 },
  )
  .map((parts): Message[] => [
    user('The task.'),
    ...parts.flatMap((part): Message[] => {
      if ('kind' in part) return [part];
      const { names, sizes, answered, measured } = part;
      const assistant = calling(names, measured === undefined ? {} : { measuredTokens: measured });
      const results = names.slice(0, answered).map((name, n) => result(n, name, `first\n${'x'.repeat(sizes[n] ?? 0)}`));
      return [assistant, ...results];
    }),
  ]);
