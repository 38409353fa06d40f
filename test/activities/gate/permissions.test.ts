import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  allowsAlways,
  type CallFacts,
  DEFAULT_PERMISSIONS,
  decide,
  type PermissionMode,
  type PermissionRule,
  type Permissions,
} from '../../../activities/gate/permissions.ts';

const MODES = ['default', 'acceptEdits', 'auto', 'dontAsk', 'bypass'] as const;

function permissions(mode: PermissionMode, ...rules: PermissionRule[]): Permissions {
  return { ...DEFAULT_PERMISSIONS, mode, rules };
}
function about(kind: 'path' | 'command', ...names: string[]): CallFacts['subject'] {
  return { kind, names };
}
const reader: CallFacts = { tool: 'read_file', effect: 'none', subject: about('path', 'a'), isWorkspaceEdit: false };
const edit: CallFacts = { tool: 'edit_file', effect: 'once', subject: about('path', 'a'), isWorkspaceEdit: true };
const shell: CallFacts = { tool: 'shell', effect: 'once', subject: about('command', 'ls'), isWorkspaceEdit: false };

describe('without rules', () => {
  it.each([
    ['default', 'allow', 'ask', 'ask'],
    ['acceptEdits', 'allow', 'allow', 'ask'],
    ['auto', 'allow', 'allow', 'deny'],
    ['dontAsk', 'allow', 'deny', 'deny'],
    ['bypass', 'allow', 'allow', 'allow'],
  ] as const)('%s: a reader %s, an edit %s, a shell %s', (mode, ...kinds) => {
    const decided = [reader, edit, shell].map((call) => decide(permissions(mode), call, true));
    expect(decided).toEqual(kinds.map((kind) => ({ kind, by: 'mode', rule: null })));
  });
});

test('deny comes before ask before allow, whatever their order', () => {
  const rules: PermissionRule[] = [
    { action: 'allow', tool: '*' },
    { action: 'ask', tool: 'sh*' },
    { action: 'deny', tool: 'shell', argument: 'ls*' },
  ];
  expect(decide(permissions('default', ...rules), shell, true)).toEqual({ kind: 'deny', by: 'rule', rule: 2 });
  expect(decide(permissions('default', ...rules.slice(0, 2)), shell, true)).toEqual({
    kind: 'ask',
    by: 'rule',
    rule: 1,
  });
  expect(decide(permissions('default', ...rules.slice(0, 1)), shell, true)).toEqual({
    kind: 'allow',
    by: 'rule',
    rule: 0,
  });
});

test('a rule that asks: what becomes of it in each mode', () => {
  const asked = MODES.map((mode) => decide(permissions(mode, { action: 'ask', tool: '*' }), reader, true));
  expect(asked.map(({ kind, by }) => `${kind} by ${by}`)).toEqual([
    'ask by rule',
    'ask by rule',
    'deny by mode',
    'deny by mode',
    'allow by mode',
  ]);
});

test('unattended, an ask is denied at once, unless there are approvers', () => {
  expect(decide(permissions('default'), shell, false)).toEqual({ kind: 'deny', by: 'policy', rule: null });
  expect(decide({ ...permissions('default'), approvers: true }, shell, false).kind).toBe('ask');
});

// A link has two names: a guard needs one of them, a permission both.
test('a link into what is denied is denied, a link out of what is allowed is not allowed', () => {
  const linked = { ...edit, subject: about('path', 'src/link', 'secrets/key'), isWorkspaceEdit: false };
  const deny = permissions('bypass', { action: 'deny', tool: '*', argument: 'secrets/**' });
  const allow = permissions('default', { action: 'allow', tool: '*', argument: 'src/**' });
  expect(decide(deny, linked, true).kind).toBe('deny');
  expect(decide(allow, linked, true).kind).toBe('ask');
  expect(decide(allow, { ...linked, subject: about('path', 'src/link', 'src/a') }, true).kind).toBe('allow');
});

test('a pattern for a call that shows no subject: guards made for this tool hold, permissions do not', () => {
  const bare = { ...shell, subject: null };
  const kinds = (['allow', 'ask', 'deny'] as const).map((action) =>
    ['shell', '*'].map((tool) => decide(permissions('default', { action, tool, argument: 'ls*' }), bare, true).by),
  );
  expect(kinds).toEqual([
    ['mode', 'mode'],
    ['rule', 'mode'],
    ['rule', 'mode'],
  ]);
});

const anyRule = fc.record(
  {
    action: fc.constantFrom('allow', 'ask', 'deny'),
    tool: fc.constantFrom('*', 'shell', 'edit_file', 'read_*'),
    argument: fc.constantFrom('*', 'ls*', 'rm *', 'src/**', 'secrets', 'a'),
  },
  { requiredKeys: ['action', 'tool'] },
) as fc.Arbitrary<PermissionRule>;
const anyPermissions: fc.Arbitrary<Permissions> = fc.record({
  mode: fc.constantFrom(...MODES),
  rules: fc.array(anyRule, { maxLength: 6 }),
  approvers: fc.boolean(),
  expiryMs: fc.constant(1),
  onExpiry: fc.constantFrom('deny', 'block'),
});
const anyCall: fc.Arbitrary<CallFacts> = fc.oneof(
  fc
    .constantFrom('a', 'src/a', 'secrets/k', 'src/../secrets/k', '/etc/x')
    .chain((path) =>
      fc.constantFrom(
        { ...edit, subject: about('path', path) },
        { ...reader, subject: about('path', path) },
        { ...edit, subject: about('path', path), isWorkspaceEdit: false },
      ),
    ),
  fc.constantFrom('ls', 'ls; rm x', 'rm x', 'echo').map((line) => ({ ...shell, subject: about('command', line) })),
  fc.constant({ ...shell, subject: null }),
);

describe('always', () => {
  const holds = (law: (p: Permissions, call: CallFacts, attended: boolean) => void) =>
    fc.assert(fc.property(anyPermissions, anyCall, fc.boolean(), law), { numRuns: 2_000 });

  it('a deny rule wins: over any mode, any other rule, anybody who watches', () =>
    holds((p, call, attended) => {
      const denies = p.rules.filter(({ action }) => action === 'deny');
      const alone = decide({ ...p, mode: 'bypass', rules: denies }, call, attended);
      if (alone.kind === 'deny') expect(decide(p, call, attended)).toMatchObject({ kind: 'deny', by: 'rule' });
    }));

  it('bypass never asks, and denies only by rule', () =>
    holds((p, call, attended) => {
      const { kind, by } = decide({ ...p, mode: 'bypass' }, call, attended);
      expect(kind === 'allow' || (kind === 'deny' && by === 'rule')).toBe(true);
    }));

  it('unattended and without approvers nobody is asked', () =>
    holds((p, call) => {
      expect(decide({ ...p, approvers: false }, call, false).kind).not.toBe('ask');
    }));

  it('being watched never allows more', () =>
    holds((p, call) => {
      expect(decide(p, call, true).kind === 'allow').toBe(decide(p, call, false).kind === 'allow');
    }));

  it('what needs no gate is allowed', () =>
    holds((p, call, attended) => {
      if (!allowsAlways(p, { name: call.tool, effect: call.effect })) return;
      expect(decide(p, call, attended).kind).toBe('allow');
    }));
});
