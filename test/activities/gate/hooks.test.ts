import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Hook, HookFacts, HookFunction, HookInput } from '../../../activities/gate/hook-types.ts';
import { createHooks } from '../../../activities/gate/hooks.ts';
import { isGone, startedAt } from '../../../activities/process/identity.ts';
import { until } from '../tools/tool-context.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-hooks-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const never = new AbortController().signal;
const facts: HookFacts = { session: 's', turn: 't', workspace: '/ws', tool: 'shell', args: { command: 'ls' } };

function script(text: string, timeLimitMs = 5_000): Hook {
  const name = `hook-${Math.random().toString(36).slice(2)}.sh`;
  writeFileSync(join(folder, name), text);
  return { event: 'PreToolUse', run: { command: 'sh', args: [name], timeLimitMs } };
}
const fn = (run: HookFunction): Hook => ({ event: 'PreToolUse', run });
const ask = (...hooks: Hook[]) => createHooks(hooks, folder).ask('PreToolUse', facts, never);
const open = (why: string, hook = 'PreToolUse 1 (sh)') => ({ deny: null, rewrite: null, failures: [{ hook, why }] });

describe('a command', () => {
  it('gets the facts as JSON, in the folder of the config, with nothing of our environment', async () => {
    process.env.PAWL_TEST_SECRET = 'test-pw';
    const asked = await ask(script('cat > got; pwd > where; env > env'));
    delete process.env.PAWL_TEST_SECRET;
    expect(asked).toEqual({ deny: null, rewrite: null, failures: [] });
    expect(JSON.parse(readFileSync(join(folder, 'got'), 'utf8'))).toEqual({ ...facts, event: 'PreToolUse' });
    expect(readFileSync(join(folder, 'where'), 'utf8').trim()).toBe(folder);
    expect(readFileSync(join(folder, 'env'), 'utf8')).not.toContain('test-pw');
  });

  it.each([
    ['says nothing', 'exit 0', { deny: null, rewrite: null, failures: [] }],
    ['denies in JSON', `echo '{"deny":"no ls"}'`, { deny: 'no ls', rewrite: null, failures: [] }],
    ['denies by its exit code', 'echo no ls >&2; exit 2', { deny: 'no ls', rewrite: null, failures: [] }],
    ['rewrites', `echo '{"rewrite":{"b":1,"a":2}}'`, { deny: null, rewrite: '{"a":2,"b":1}', failures: [] }],
    // Whoever wants to deny and says more than that still denies.
    ['does both', `echo '{"rewrite":{},"deny":"no"}'`, { deny: 'no', rewrite: null, failures: [] }],
    ['crashes', 'kill -SEGV $$', open('ended by SIGSEGV')],
    ['fails', 'echo x >&2; exit 1', open('exit code 1')],
    ['prints garbage', 'echo lorem ipsum', open('its output is not JSON')],
    ['prints other JSON', `echo '{"decision":"block"}'`, open('its answer is neither deny nor rewrite')],
    ['rewrites to a list', `echo '{"rewrite":[]}'`, open('its answer is neither deny nor rewrite')],
    ['prints bytes', "printf '\\377\\000'", open('its output is not JSON')],
    ['prints without end', 'yes', open('printed more than 65536 bytes')],
  ])('that %s', async (_, text, asked) => {
    expect(await ask(script(text))).toEqual(asked);
  });

  it('that hangs is killed at its limit with its children, and fails open', async () => {
    const asked = await ask(script("trap '' TERM INT; sleep 1000 & echo $! > child; wait; sleep 1000", 500));
    expect(asked).toEqual(open('took longer than 500 ms'));
    expect(startedAt(Number(readFileSync(join(folder, 'child'), 'utf8')))).toBeNull();
  });

  it.each([
    ['in the background', 'sleep 1000 & echo $! > child'],
    ['in a session of its own', "setsid sh -c 'echo $$ > child; exec sleep 1000' & until [ -s child ]; do :; done"],
  ])('that leaves a child %s does not hold the call, and the child is ended', async (_, text) => {
    expect(await ask(script(`${text}; echo '{"deny":"no"}'`))).toMatchObject({ deny: 'no', failures: [] });
    expect(startedAt(Number(readFileSync(join(folder, 'child'), 'utf8')))).toBeNull();
  });

  it('that complains without end still denies', async () => {
    const { deny } = await ask(script('head -c 5000000 /dev/zero | tr "\\0" x >&2; exit 2'));
    expect(deny?.length).toBe(65_536);
  });

  it('that is not there fails open', async () => {
    const hook: Hook = { event: 'PreToolUse', run: { command: 'no-such-command' } };
    expect(await ask(hook)).toEqual(open('could not be started', 'PreToolUse 1 (no-such-command)'));
  });

  // Far more than a pipe holds: neither a reader nor one that never looks may hang.
  it.each([
    ['reads', 'wc -c > size'],
    ['does not read', 'echo 0 > size'],
  ])('that %s five megabytes ends', async (_, text) => {
    const big = { ...facts, args: { command: 'x'.repeat(5_000_000) } };
    const asked = await createHooks([script(text)], folder).ask('PreToolUse', big, never);
    expect(asked).toEqual({ deny: null, rewrite: null, failures: [] });
    expect(existsSync(join(folder, 'size'))).toBe(true);
  });
});

describe('a function', () => {
  it.each<[string, HookFunction, string]>([
    ['throws', () => Promise.reject(new TypeError('content')), 'threw TypeError'],
    ['answers nonsense', () => 'yes' as never, 'its answer is neither deny nor rewrite'],
    ['rewrites to a circle', () => circle(), 'threw RangeError'],
  ])('that %s fails open', async (_, run, why) => {
    expect(await ask(fn(run))).toMatchObject({ deny: null, rewrite: null, failures: [{ why }] });
  });

  it('that hangs fails open after 5 s, and is told', async () => {
    let told = false;
    const hang: HookFunction = (_, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          told = true;
          reject(new Error('late'));
        });
      });
    expect((await ask(fn(hang))).failures).toMatchObject([{ why: 'took longer than 5000 ms' }]);
    expect(told).toBe(true);
  });

  function circle(): { rewrite: Record<string, unknown> } {
    const args: Record<string, unknown> = {};
    args.args = args;
    return { rewrite: args };
  }
});

describe('several', () => {
  it('each sees the original input, the last rewrite wins', async () => {
    const seen: unknown[] = [];
    const rewriting = (command: string) =>
      fn((input: HookInput) => {
        seen.push(structuredClone(input.args));
        (input.args as { command: string }).command = 'spoilt';
        return { rewrite: { command } };
      });
    const asked = await ask(
      rewriting('one'),
      rewriting('two'),
      fn(() => undefined),
    );
    expect(asked).toEqual({ deny: null, rewrite: '{"command":"two"}', failures: [] });
    expect(seen).toEqual([{ command: 'ls' }, { command: 'ls' }]);
  });

  it('the first deny ends the chain, and undoes a rewrite', async () => {
    const asked = await ask(
      fn(() => ({ rewrite: { command: 'one' } })),
      fn(() => Promise.reject(new Error())),
      fn(() => ({ deny: 'no' })),
      fn(() => expect.unreachable()),
    );
    expect(asked).toEqual({ deny: 'no', rewrite: null, failures: [{ hook: 'PreToolUse 2', why: 'threw Error' }] });
  });

  it('only those of the event and the tool are asked', () => {
    const hooks = createHooks([{ event: 'PreToolUse', tool: 'mcp__*', run: () => null }], folder);
    const has = [
      hooks.has('PreToolUse', 'mcp__x'),
      hooks.has('PreToolUse', 'shell'),
      hooks.has('PostToolUse', 'mcp__x'),
    ];
    expect(has).toEqual([true, false, false]);
  });
});

// A cancelled call must not run because its hook was cut and failed open.
it('a cancel is thrown, and the command is gone', async () => {
  const cancel = new AbortController();
  const asked = createHooks([script('echo $$ > pid.new; mv pid.new pid; sleep 1000')], folder).ask(
    'PreToolUse',
    facts,
    cancel.signal,
  );
  await until('the hook runs', () => existsSync(join(folder, 'pid')));
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  const identity = { pid, started: startedAt(pid) ?? '' };
  cancel.abort(new Error('CANCELLED'));
  await expect(asked).rejects.toThrow('CANCELLED');
  expect(isGone(identity)).toBe(true);
});

describe('a report', () => {
  it('tells all, whatever they print or throw', async () => {
    const told: string[] = [];
    const hooks: Hook[] = [
      { ...script('echo lorem ipsum; cat > got'), event: 'PostToolUse' },
      { event: 'PostToolUse', run: () => Promise.reject(new Error('content')) },
      { ...script('echo no >&2; exit 2'), event: 'PostToolUse' },
      {
        event: 'PostToolUse',
        run: async ({ event }) => {
          await sleep(1);
          told.push(event);
        },
      },
    ];
    expect(await createHooks(hooks, folder).report('PostToolUse', facts)).toEqual([
      { hook: 'PostToolUse 2', why: 'threw Error' },
      { hook: 'PostToolUse 3 (sh)', why: 'exit code 2' },
    ]);
    expect(told).toEqual(['PostToolUse']);
    expect(JSON.parse(readFileSync(join(folder, 'got'), 'utf8'))).toMatchObject({ event: 'PostToolUse', session: 's' });
  });

  it('a prompt may be denied, not rewritten', async () => {
    const asked = await createHooks(
      [
        { event: 'UserPromptSubmit', run: () => ({ rewrite: {} }) },
        { event: 'UserPromptSubmit', run: () => ({ deny: 'no' }) },
      ],
      folder,
    ).ask('UserPromptSubmit', facts, never);
    expect(asked).toEqual({
      deny: 'no',
      rewrite: null,
      failures: [{ hook: 'UserPromptSubmit 1', why: 'there is nothing to rewrite' }],
    });
  });
});

describe('the stop gate', () => {
  const gate = (run: HookFunction | string): Hook =>
    typeof run === 'string' ? { ...script(run), event: 'StopGate' } : { event: 'StopGate', run };
  const askStop = (...hooks: Hook[]) => createHooks(hooks, folder).askStop(facts, never);
  const failed = (why: string) => ({ kind: 'pass', failures: [{ hook: expect.stringContaining('StopGate 1'), why }] });

  it.each<[string, HookFunction | string, unknown]>([
    ['says nothing', 'exit 0', { kind: 'pass', failures: [] }],
    ['lets it go on to its end', `echo '{"continue":true}'`, { kind: 'pass', failures: [] }],
    ['blocks in JSON', `echo '{"decision":"block","reason":"no"}'`, { kind: 'block', reason: 'no', failures: [] }],
    ['blocks by its exit code', 'echo no >&2; exit 2', { kind: 'block', reason: 'no', failures: [] }],
    [
      'blocks as a function',
      () => ({ decision: 'block', reason: 'no' }),
      { kind: 'block', reason: 'no', failures: [] },
    ],
    ['stops', `echo '{"continue":false,"stopReason":"enough"}'`, { kind: 'stop', why: 'enough', failures: [] }],
    ['stops without a word', () => ({ continue: false }), { kind: 'stop', why: null, failures: [] }],
    ['stops and blocks', `echo '{"continue":false,"decision":"block","reason":"no"}'`, { kind: 'stop', why: null }],
    // A block that nobody can read must not look like a pass that nobody notices.
    [
      'blocks without a reason',
      `echo '{"decision":"block"}'`,
      failed('its answer is neither block nor continue: false'),
    ],
    ['answers another question', () => ({ deny: 'no' }), failed('its answer is neither block nor continue: false')],
    ['prints garbage', 'echo lorem', failed('its output is not JSON')],
    ['fails', 'exit 1', failed('exit code 1')],
    ['hangs', "trap '' TERM; sleep 1000", failed('took longer than 500 ms')],
  ])('a hook that %s', async (_, run, expected) => {
    const hook = typeof run === 'string' ? { ...script(run, 500), event: 'StopGate' as const } : gate(run);
    expect(await askStop(hook)).toMatchObject(expected as object);
  });

  it('all are asked in order with the same facts; the first block counts, a stop wins and is the last one asked', async () => {
    const seen: unknown[] = [];
    const said = (answer: Awaited<ReturnType<HookFunction>>) =>
      gate((input) => {
        seen.push({ ...input });
        Object.assign(input, { args: 'changed' });
        return answer;
      });
    const block = (reason: string) => said({ decision: 'block', reason });
    expect(await askStop(block('one'), said(null), block('two'))).toMatchObject({ kind: 'block', reason: 'one' });
    expect(seen).toEqual(Array(3).fill({ ...facts, event: 'StopGate' }));
    const stopped = await askStop(block('one'), said({ continue: false, stopReason: 'enough' }), block('two'));
    expect(stopped).toEqual({ kind: 'stop', hook: 'StopGate 2', why: 'enough', failures: [] });
    expect(seen).toHaveLength(5);
  });
});
