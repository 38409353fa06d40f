import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildContext } from '../../../activities/context/build.ts';
import { collapse } from '../../../activities/context/collapse.ts';
import { dropDirectives } from '../../../activities/context/drop-directives.ts';
import { microCompact } from '../../../activities/context/micro-compact.ts';
import { resultBudget } from '../../../activities/context/result-budget.ts';
import { roundsOf } from '../../../activities/context/rounds.ts';
import { snip } from '../../../activities/context/snip.ts';
import { type Pressure, type Stage, sumTokens } from '../../../activities/context/stage.ts';
import { stripImages } from '../../../activities/context/strip-images.ts';
import type { Shown } from '../../../activities/model/port.ts';
import { NO_RESULT_TEXT, repairPairs } from '../../../activities/model/repair-pairs.ts';
import { toChatMessages } from '../../../activities/model/to-chat-messages.ts';
import { type ChatRequestMessage, pairingFault } from '../../../testing/index.ts';
import { frozen } from '../../core/fixtures.ts';
import type { Message } from '../../../workflows/core/transcript.ts';
import { AGENT, calling, conversations, directive, linksOf, result, round, said, TOOLS, user } from './chat.ts';

const pressure = (needTokens: number, contextTokens = 32_000): Pressure => ({
  needTokens,
  contextTokens,
  readers: new Set(['read']),
});
const texts = (shown: readonly Shown[]) => shown.map((message) => `${message.kind} ${message.text.slice(0, 40)}`);
const wire = (shown: readonly Shown[]) =>
  toChatMessages(shown, { instructions: '', provider: 'p', model: 'm', reasoning: 'send' }) as ChatRequestMessage[];

const STAGES: readonly [string, Stage][] = [
  ['result budget', resultBudget],
  ['snip', snip],
  ['micro-compact', microCompact],
  ['collapse', collapse],
  ['drop superseded directives', dropDirectives],
  ['strip images', stripImages],
];

describe.each(STAGES)('%s', (_name, stage) => {
  const needs = fc.constantFrom(0, 50, 5_000, 1_000_000);

  test('no call loses its result, none stays without its reasoning, whatever has no answer stays', () => {
    fc.assert(
      fc.property(conversations, needs, (messages, need) => {
        const before = repairPairs(frozen(messages));
        const { shown, freedTokens } = stage(before, pressure(need));
        expect(pairingFault(wire(shown))).toBeNull();
        expect(freedTokens).toBe(sumTokens(before) - sumTokens(shown));
        const unanswered = (all: readonly Shown[]) => all.filter(({ text }) => text === NO_RESULT_TEXT).length;
        expect(unanswered(shown)).toBe(unanswered(before));
        // An assistant message is left alone or goes as a whole.
        for (const message of shown) if (message.kind === 'assistant') expect(before).toContain(message);
      }),
      { numRuns: 60 },
    );
  });

  test('done again with what is still needed, it changes nothing', () => {
    fc.assert(
      fc.property(conversations, needs, (messages, need) => {
        const first = stage(repairPairs(messages), pressure(need));
        const again = stage(first.shown, pressure(need - first.freedTokens));
        expect(again).toEqual({ shown: first.shown, freedTokens: 0 });
      }),
      { numRuns: 60 },
    );
  });
});

describe('each stage', () => {
  test('result budget: the largest results of one round are cut so that all fit, the small ones stay', () => {
    const [small, big, bigger] = [1_000, 40_000, 80_000].map((chars, n) => result(n, 'read', 'x'.repeat(chars)));
    const before = [user('q'), calling(['read', 'read', 'read']), small!, big!, bigger!];
    const { shown, freedTokens } = resultBudget(before, pressure(0));
    expect(shown.slice(0, 3)).toEqual(before.slice(0, 3));
    expect(sumTokens(shown.slice(2))).toBeLessThanOrEqual(32_000 * 0.2);
    expect(shown[4]?.text).toMatch(/^x+\n\[\.\.\. \d+ or more characters left out here \.\.\.\]\nx+$/);
    expect(freedTokens).toBeGreaterThan(20_000);
  });

  const old = [user('q'), ...Array.from({ length: 12 }, (_, n) => round(n % 2 ? 'read' : 'shell', 3_000)).flat()];

  test('snip: old output becomes its first line, oldest first, only as much as is needed', () => {
    const once = snip(old, pressure(1));
    expect(texts(once.shown.slice(0, 5))).toEqual([
      'user q',
      'assistant ',
      'tool_result first line of shell [... 3001 characters',
      'assistant ',
      expect.stringMatching(/^tool_result first line of read\nxx/),
    ]);
    const all = snip(old, pressure(1_000_000)).shown;
    // The newest eight rounds stay as they are.
    expect(all.slice(9)).toEqual(old.slice(9));
    expect(all.slice(0, 9).every(({ text }) => text.length < 400)).toBe(true);
  });

  test('snip: the place of the whole output is kept', () => {
    const [first, ...rest] = old.slice(2);
    const kept = { ...(first as Shown & { kind: 'tool_result' }), blob: 'b7' };
    expect(snip([...old.slice(0, 2), kept, ...rest], pressure(1)).shown[2]?.text).toContain('read_output, id b7');
  });

  test('micro-compact: old results of what can be called again; a failure stays', () => {
    const failed = [calling(['read']), { ...result(0, 'read', 'x'.repeat(500)), isError: true } as Shown];
    const { shown } = microCompact([user('q'), ...failed, ...old.slice(1)], pressure(1_000_000));
    const left = roundsOf(shown).map(({ results }) => `${results[0]?.tool} ${results[0]?.text.slice(0, 5)}`);
    expect(left).toEqual([
      'read xxxxx',
      ...Array.from({ length: 4 }, () => ['shell first', 'read [This']).flat(),
      ...Array.from({ length: 2 }, () => ['shell first', 'read first']).flat(),
    ]);
  });

  test('collapse: finished older rounds as one line for each call, neighbours in one message', () => {
    const open = [calling(['shell']), result(0, 'shell', NO_RESULT_TEXT)];
    const steered = [...old.slice(0, 5), user('and this', 'steer'), ...open, ...old.slice(5)];
    const { shown } = collapse(steered, pressure(1_000_000));
    expect(texts(shown.slice(0, 6))).toEqual([
      'user q',
      'projection [Earlier steps, one line for each call:]',
      'user and this',
      // Nobody knows what it did: it stays as it is.
      'assistant ',
      `tool_result ${NO_RESULT_TEXT.slice(0, 40)}`,
      'projection [Earlier steps, one line for each call:]',
    ]);
    expect(shown[1]?.text).toBe(
      [
        '[Earlier steps, one line for each call:]',
        '- shell {"path":"a.txt"} -> first line of shell',
        '- read {"path":"a.txt"} -> first line of read',
      ].join('\n'),
    );
    expect(roundsOf(shown)).toHaveLength(7);
  });

  test('directives: only the newest stays, also one that came as an input', () => {
    const before = [
      directive('one'),
      said('ok'),
      user('two', 'directive'),
      said('ok'),
      user('a person'),
      directive('three'),
    ];
    expect(texts(dropDirectives(before, pressure(0)).shown)).toEqual([
      'assistant ok',
      'assistant ok',
      'user a person',
      'directive three',
    ]);
  });

  test('images: those before the refusal are not sent again, the words around them are', () => {
    const image = `see data:image/png;base64,${'A'.repeat(5_000)} there`;
    const refused: Shown = { kind: 'reminder', code: 'images_stripped', text: 'refused' };
    const { shown } = stripImages([user(image), refused, user(image)], pressure(0));
    expect(shown[0]?.text).toBe('see [an image that the provider refused; not shown] there');
    expect(shown[2]?.text).toBe(image);
  });
});

describe('a build', () => {
  const frame = { agent: AGENT, tools: TOOLS, contextTokens: 32_000, mayCompact: true };
  const wholeRounds = (n: number) => [user('q'), ...Array.from({ length: n }, () => round('shell', 8_000)).flat()];

  test('whatever the conversation: pairs are whole, the store’s messages stay as they are, the same again', () => {
    fc.assert(
      fc.property(conversations, fc.constantFrom(8_000, 32_000, 128_000), (messages, contextTokens) => {
        const chain = frozen(linksOf(messages));
        const built = buildContext(chain, { ...frame, contextTokens });
        expect(pairingFault(wire(built.messages))).toBeNull();
        expect(buildContext(chain, { ...frame, contextTokens })).toEqual(built);
        if (built.fits)
          expect(built.estimateTokens).toBeLessThan(Math.min(contextTokens * 0.85, contextTokens - 3_000));
      }),
      { numRuns: 100 },
    );
  });

  // What an earlier build of this process has worked out must not make a difference.
  test('going on from an earlier build, or from nothing: the same request', () => {
    let roots = 0;
    fc.assert(
      fc.property(
        conversations,
        fc.constantFrom(8_000, 32_000),
        fc.boolean(),
        fc.nat(3),
        (messages, contextTokens, refused, summaryAt) => {
          const image: Message = { kind: 'reminder', code: 'images_stripped', text: 'refused' };
          const talk = refused ? [...messages, image] : messages;
          const cut = Math.floor((talk.length * summaryAt) / 4);
          const keptFrom = Math.max(1, cut - 3);
          const summary: Message = { kind: 'compaction', text: 'sum', keptFrom, objective: '', todos: [] };
          const bodies = summaryAt === 0 ? talk : [...talk.slice(0, cut), summary, ...talk.slice(cut)];
          const root = `warm ${(roots += 1)}`;
          for (const part of [0.3, 0.55, 0.6, 0.8, 0.9]) {
            buildContext(linksOf(bodies.slice(0, bodies.length * part), root), { ...frame, contextTokens });
          }
          const warm = buildContext(linksOf(bodies, root), { ...frame, contextTokens });
          expect(warm).toEqual(buildContext(linksOf(bodies, `cold ${roots}`), { ...frame, contextTokens }));
        },
      ),
      { numRuns: 100 },
    );
  });

  // Trap: trimming by today's size alone would change the beginning of every request, and cost the cache each time.
  test('what was trimmed stays trimmed the same way, so requests share their beginning', () => {
    const bodies = wholeRounds(40);
    const sizes: number[] = [];
    let changes = 0;
    for (let end = 2; end < bodies.length; end += 2) {
      const now = buildContext(linksOf(bodies.slice(0, end + 1)), frame);
      const next = buildContext(linksOf(bodies.slice(0, end + 3)), frame);
      sizes.push(now.estimateTokens);
      const shared = now.messages.every((message, n) => message.text === next.messages[n]?.text);
      if (!shared) changes += 1;
    }
    expect(Math.max(...sizes)).toBeLessThan(32_000 * 0.85);
    expect(changes).toBeLessThan(8);
  });

  test('compaction is asked for only if the cheap stages were not enough', () => {
    const talk = Array.from({ length: 36 }, (_, n) => [
      user(`${n} ${'x'.repeat(2_000)}`),
      said('y'.repeat(1_000)),
    ]).flat();
    expect(buildContext(linksOf(wholeRounds(40)), frame).fits).toBe(true);
    expect(buildContext(linksOf(talk), frame)).toMatchObject({ fits: false, misfit: 'needs_compaction' });
    expect(buildContext(linksOf(talk), { ...frame, mayCompact: false })).toMatchObject({ fits: true });
    const more = [...talk, ...talk];
    expect(buildContext(linksOf(more), { ...frame, mayCompact: false })).toMatchObject({
      fits: false,
      misfit: 'no_room',
    });
  });

  test.each<[name: string, measured: number | undefined, estimate: number]>([
    ['by bytes before any count', undefined, 10_082],
    ['by the provider’s count, and by bytes since', 4_000, 4_000 + Math.round(5_030 * 0.794)],
    ['by a count that leaves out cached input, never below a share of the bytes', 10, 2_015 + Math.round(5_030 * 0.75)],
    ['by a large count, bytes since by its measure', 7_000, 7_000 + Math.round(5_030 * 1.389)],
  ])('the size is known %s', (_name, measured, estimate) => {
    const reply = said('x'.repeat(20_000), measured === undefined ? {} : { measuredTokens: measured });
    const built = buildContext(linksOf([user('q'), reply, user('y'.repeat(20_104))]), frame);
    expect(Math.abs(built.estimateTokens - estimate)).toBeLessThanOrEqual(15);
  });

  // Trap: a large schema is sent with each request, in the tools or beside them, and nobody had room for it.
  test('the format of an answer counts, as a tool that stands in for it does', () => {
    const schema = { type: 'object', description: 'd'.repeat(100_000) };
    const talk = linksOf([user('q')]);
    const bare = buildContext(talk, frame);
    const formatted = buildContext(talk, { ...frame, answer: { name: 'answer', schema } });
    expect(formatted.estimateTokens - bare.estimateTokens).toBe(Math.ceil(JSON.stringify(schema).length / 4));
    const narrow = { ...frame, contextTokens: 28_000 };
    expect(buildContext(talk, narrow).fits).toBe(true);
    expect(buildContext(talk, { ...narrow, answer: { name: 'answer', schema } }).fits).toBe(false);
  });

  test('what a compaction kept was counted with all that is gone now: its count is not believed', () => {
    const bodies = [...wholeRounds(4), said('so', { measuredTokens: 27_000 })];
    const summary = { kind: 'compaction', text: 'sum', keptFrom: bodies.length, objective: '', todos: [] } as const;
    const built = buildContext(linksOf([...bodies, summary, user('on')]), frame);
    expect(texts(built.messages)).toEqual(['compaction sum', 'assistant so', 'user on']);
    expect(built.estimateTokens).toBeLessThan(100);
  });

  test('a long chain is built in time that grows with its length, not with its square', () => {
    const time = (n: number) => {
      const bodies = [user('q'), ...Array.from({ length: n }, () => round('shell', 40)).flat()];
      const chains = Array.from({ length: 5 }, (_, copy) => linksOf(bodies, `${n} ${copy} ${Math.random()}`));
      const from = performance.now();
      for (const chain of chains) buildContext(chain, { ...frame, contextTokens: 10_000_000 });
      return performance.now() - from;
    };
    time(500);
    expect(time(8_000) / time(1_000)).toBeLessThan(24);
  });
});
