import fc from 'fast-check';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import type { Hook, HookAnswer } from '../../../activities/gate/hook-types.ts';
import { createHooks } from '../../../activities/gate/hooks.ts';
import { type Guards, judge, judgeApproved, type JudgedCall, needsGate } from '../../../activities/gate/judge.ts';
import { DEFAULT_PERMISSIONS, type PermissionMode, type PermissionRule } from '../../../activities/gate/permissions.ts';
import { builtinTools } from '../../../activities/tools/builtin.ts';

let workspace: string;
beforeAll(() => {
  workspace = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-judge-')));
  mkdirSync(join(workspace, 'secrets'));
  symlinkSync('secrets', join(workspace, 'link'));
});
afterAll(() => rmSync(workspace, { recursive: true }));

function call(name: string, args: object): JudgedCall {
  const tool = builtinTools.find((candidate) => candidate.name === name)!;
  return { tool, effect: tool.effect, args: JSON.stringify(args) };
}
const sh = (command: string) => call('shell', { command });
const write = (path: string) => call('write_file', { path, content: 'x' });
const edit = (path: string) => call('edit_file', { path, old_string: 'a', new_string: 'b' });
const read = (path: string) => call('read_file', { path });
const search = (path: string) => call('search_text', { path, pattern: 'x' });

interface Setting {
  readonly mode?: PermissionMode;
  readonly rules?: readonly PermissionRule[];
  readonly plan?: string | null;
  readonly hooks?: readonly Hook[];
  readonly attended?: boolean;
}
function guards({ mode = 'bypass', rules = [], plan, hooks = [], attended = true }: Setting = {}): Guards {
  return {
    plan: plan === undefined ? null : { file: plan },
    hooks: createHooks(hooks, '/'),
    permissions: { ...DEFAULT_PERMISSIONS, mode, rules },
    attended,
    workspace,
    session: 's',
    turn: 't',
    signal: new AbortController().signal,
  };
}
const hook = (answer: HookAnswer | null): Hook => ({ event: 'PreToolUse', run: () => answer });
const rewriteTo = (of: JudgedCall) => hook({ rewrite: JSON.parse(of.args) });
const said = async (of: JudgedCall, setting: Setting) => {
  const judgement = await judge(of, guards(setting));
  return judgement.kind === 'denied' ? judgement.by : judgement.kind;
};
const deny = (tool: string, argument?: string): PermissionRule => ({
  action: 'deny',
  tool,
  ...(argument && { argument }),
});

test('an agent without permissions runs its tools unasked', async () => {
  expect(await judge(sh('ls'), guards())).toEqual({ kind: 'run', args: null, failures: [] });
});

describe('the plan', () => {
  it.each<[string, () => JudgedCall, string]>([
    ['reads', () => read('a'), 'run'],
    ['a shell, even one that only reads', () => sh('ls'), 'plan'],
    ['a write elsewhere', () => write('a'), 'plan'],
    ['the plan file', () => write('plan.md'), 'run'],
    ['the plan file by another spelling', () => edit('./x/../plan.md'), 'run'],
    ['the plan file by its whole path', () => write(join(workspace, 'plan.md')), 'run'],
    ['a twin of the plan file', () => write('plan.md.sh'), 'plan'],
    ['a way out', () => write('../plan.md'), 'plan'],
  ])('%s', async (_, of, expected) => {
    expect(await said(of(), { plan: 'plan.md' })).toBe(expected);
  });

  it('holds through links, and where there is no file', async () => {
    expect(await said(write('link/plan.md'), { plan: 'secrets/plan.md' })).toBe('plan');
    expect(await said(write('plan.md'), { plan: null })).toBe('plan');
  });

  it('is not opened by a hook, an allow rule or bypass', async () => {
    const rules: PermissionRule[] = [{ action: 'allow', tool: '*' }];
    expect(await said(write('plan.md'), { plan: 'plan.md', rules, hooks: [rewriteTo(write('a'))] })).toBe('plan');
    expect(await said(write('a'), { plan: 'plan.md', rules, hooks: [rewriteTo(write('plan.md'))] })).toBe('plan');
  });
});

describe('hooks', () => {
  it('deny, with the reason for the model', async () => {
    expect(await judge(sh('ls'), guards({ hooks: [hook({ deny: 'no ls here' })] }))).toEqual({
      kind: 'denied',
      by: 'hook',
      text: 'The call of shell did not run, a hook denied it: no ls here',
      failures: [],
    });
  });

  it('rewrite, and what they wrote is validated', async () => {
    const rewritten = await judge(sh('ls'), guards({ hooks: [rewriteTo(sh('ls -l'))] }));
    expect(rewritten).toEqual({ kind: 'run', args: '{"command":"ls -l"}', failures: [] });
    expect(await said(sh('ls'), { hooks: [hook({ rewrite: { cmd: 'ls' } })] })).toBe('arguments');
  });

  it('that change nothing, or fail, leave the arguments alone', async () => {
    expect(await judge(sh('ls'), guards({ hooks: [rewriteTo(sh('ls'))] }))).toMatchObject({ kind: 'run', args: null });
    const failing: Hook = { event: 'PreToolUse', run: () => Promise.reject(new Error()) };
    expect(await judge(sh('ls'), guards({ hooks: [failing] }))).toEqual({
      kind: 'run',
      args: null,
      failures: [{ hook: 'PreToolUse 1', why: 'threw Error' }],
    });
  });

  // What the approver sees must be what will run.
  it('an ask carries the final arguments', async () => {
    expect(await judge(sh('ls'), guards({ mode: 'default', hooks: [rewriteTo(sh('rm x'))] }))).toEqual({
      kind: 'ask',
      args: '{"command":"rm x"}',
      summary: { tool: 'shell', subject: 'rm x' },
      failures: [],
    });
  });
});

describe('permissions look at the final arguments', () => {
  it.each<[string, JudgedCall, Setting, string]>([
    [
      'a rewrite into what is denied',
      sh('ls'),
      { rules: [deny('shell', 'rm *')], hooks: [rewriteTo(sh('rm x'))] },
      'rule',
    ],
    ['a rewrite away from it', sh('rm x'), { rules: [deny('shell', 'rm *')], hooks: [rewriteTo(sh('ls'))] }, 'run'],
    ['a link into a denied folder', read('link/key'), { rules: [deny('*', 'secrets/**')] }, 'rule'],
    ['a search above a denied folder', search('.'), { rules: [deny('*', 'secrets/**')] }, 'rule'],
    ['a search beside it', search('src'), { rules: [deny('*', 'secrets/**')] }, 'run'],
    ['an edit', edit('a'), { mode: 'acceptEdits' }, 'run'],
    ['an edit of what git would run', edit('.git/hooks/pre-commit'), { mode: 'acceptEdits' }, 'ask'],
    ['an edit outside', edit('../a'), { mode: 'acceptEdits' }, 'ask'],
    ['an ask that nobody can answer', sh('ls'), { mode: 'default', attended: false }, 'policy'],
    ['an ask where none is wanted', sh('ls'), { mode: 'dontAsk' }, 'mode'],
    ['broken arguments', call('shell', {}), {}, 'arguments'],
  ])('%s', async (_, of, setting, expected) => {
    expect(await said(of, setting)).toBe(expected);
  });

  it('a tool that became more dangerous than it was pinned, or was so then, counts as such', async () => {
    expect(await said({ ...sh('ls'), effect: 'none' }, { mode: 'default' })).toBe('ask');
    expect(await said({ ...read('a'), effect: 'once' }, { mode: 'default' })).toBe('ask');
  });
});

describe('after an approval', () => {
  it.each<[string, string | null, Setting, string]>([
    ['the yes answers the ask', null, { mode: 'default', attended: false }, 'run'],
    ['edited arguments run', '{"command":"ls -l"}', { mode: 'default' }, 'run'],
    ['edited arguments are validated', '{"command":1}', { mode: 'default' }, 'arguments'],
    [
      'edited arguments open no deny rule',
      '{"command":"rm x"}',
      { mode: 'default', rules: [deny('shell', 'rm *')] },
      'rule',
    ],
    ['a plan that began meanwhile holds', null, { mode: 'default', plan: 'plan.md' }, 'plan'],
  ])('%s', async (_, edited, setting, expected) => {
    const judgement = await judgeApproved(sh('ls'), edited, guards(setting));
    expect(judgement.kind === 'denied' ? judgement.by : judgement.kind).toBe(expected);
    if (judgement.kind === 'run') expect(judgement.args).toBe(edited);
  });
});

describe('always', () => {
  const commands = ['ls', 'rm x', 'ls; rm x', 'echo'];
  const calls = fc.oneof(
    fc.constantFrom(...commands).map(sh),
    fc
      .constantFrom('a', 'plan.md', 'secrets/k', 'link/k', '../x')
      .chain((path) => fc.constantFrom(write(path), edit(path), read(path))),
  );
  const rules = fc.array(
    fc.constantFrom<PermissionRule>(
      deny('shell', 'rm *'),
      deny('*', 'secrets/**'),
      deny('edit_file'),
      { action: 'allow', tool: '*' },
      { action: 'ask', tool: 'write_file' },
    ),
    { maxLength: 4 },
  );
  const settings = fc.record({
    mode: fc.constantFrom<PermissionMode>('default', 'acceptEdits', 'auto', 'dontAsk', 'bypass'),
    rules,
    attended: fc.boolean(),
    plan: fc.constantFrom(undefined, null, 'plan.md'),
  }) as fc.Arbitrary<Setting>;

  it('a rewrite opens nothing: what is denied as it stands is denied after it too', () =>
    fc.assert(
      fc.asyncProperty(calls, calls, settings, async (from, to, setting) => {
        fc.pre(from.tool === to.tool);
        const plain = await said(to, setting);
        const rewritten = await said(from, { ...setting, hooks: [rewriteTo(to)] });
        if (plain !== 'run' && plain !== 'ask') expect(['plan', plain]).toContain(rewritten);
        if (plain === 'ask') expect(['plan', 'ask']).toContain(rewritten);
      }),
      { numRuns: 300 },
    ));

  it('what needs no gate runs as it is', () =>
    fc.assert(
      fc.asyncProperty(calls, settings, async (of, setting) => {
        if (needsGate(of.tool, guards(setting))) return;
        expect(await judge(of, guards(setting))).toEqual({ kind: 'run', args: null, failures: [] });
      }),
      { numRuns: 300 },
    ));

  it('a hook for the tool, or a plan, needs the gate', () => {
    const { tool } = sh('ls');
    expect([{}, { hooks: [hook(null)] }, { plan: null }].map((setting) => needsGate(tool, guards(setting)))).toEqual([
      false,
      true,
      true,
    ]);
  });
});
