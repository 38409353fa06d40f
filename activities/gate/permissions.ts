import { POLICY } from '../../workflows/core/policy.ts';
import type { Effect } from '../../workflows/core/tools.ts';
import type { Subject } from '../tools/define-tool.ts';
import { commandFits, fits, pathFits, type Strictness, urlFits } from './patterns.ts';

/**
 * What happens to a call that no rule speaks of:
 * `default` asks for everything but readers, `acceptEdits` for everything but readers and edits of the workspace;
 * `auto` allows those and denies the rest; `dontAsk` is `default` with no for an ask; `bypass` runs it.
 */
export type PermissionMode = 'default' | 'acceptEdits' | 'auto' | 'dontAsk' | 'bypass';

export interface PermissionRule {
  readonly action: 'allow' | 'ask' | 'deny';
  /** Name of a tool, `*` for any characters. */
  readonly tool: string;
  /** Pattern for the subject of the call (command, path, URL); without it, every call of the tool. */
  readonly argument?: string;
}

export interface Permissions {
  readonly mode: PermissionMode;
  /** Their order does not matter: deny before ask before allow. */
  readonly rules: readonly PermissionRule[];
  /** Whether somebody can be asked although nobody watches. */
  readonly approvers: boolean;
  /** How long an approval waits, ms. */
  readonly expiryMs: number;
  readonly onExpiry: 'deny' | 'block';
}

/** For an agent that says nothing of permissions: the list of its tools is the permission. */
export const DEFAULT_PERMISSIONS: Permissions = {
  mode: 'bypass',
  rules: [],
  approvers: false,
  expiryMs: POLICY.approval.expiryMs,
  onExpiry: 'deny',
};

/** What a decision is made of: the final arguments, as far as rules look at them. */
export interface CallFacts {
  readonly tool: string;
  readonly effect: Effect;
  /** All names of the one thing the call is about: `deny` and `ask` need one that fits, `allow` needs all. */
  readonly subject: { readonly kind: Subject['kind']; readonly names: readonly string[] } | null;
  /** It changes nothing but plain files of the workspace. */
  readonly isWorkspaceEdit: boolean;
}

export interface Decision {
  readonly kind: 'allow' | 'ask' | 'deny';
  /** `policy`: it would ask, but there is nobody to be asked. */
  readonly by: 'rule' | 'mode' | 'policy';
  /** Index of the rule that spoke. */
  readonly rule: number | null;
}

export function decide(permissions: Permissions, call: CallFacts, attended: boolean): Decision {
  const wanted = byRules(permissions, call) ?? byMode(permissions.mode, call);
  if (wanted.kind !== 'ask') return wanted;
  switch (permissions.mode) {
    case 'bypass':
      return { ...wanted, kind: 'allow', by: 'mode' };
    case 'auto':
    case 'dontAsk':
      return { ...wanted, kind: 'deny', by: 'mode' };
    case 'default':
    case 'acceptEdits':
      return attended || permissions.approvers ? wanted : { ...wanted, kind: 'deny', by: 'policy' };
  }
}

/** Whether every call of this tool is allowed, whatever its arguments. */
export function allowsAlways(permissions: Permissions, tool: { readonly name: string; readonly effect: Effect }) {
  const rules = permissions.rules.filter((rule) => fits(rule.tool, tool.name));
  const stricter = permissions.mode === 'bypass' ? ['deny'] : ['deny', 'ask'];
  if (rules.some(({ action }) => stricter.includes(action))) return false;
  if (rules.some(({ action, argument }) => action === 'allow' && argument === undefined)) return true;
  return permissions.mode === 'bypass' || tool.effect === 'none';
}

function byRules({ rules }: Permissions, call: CallFacts): Decision | null {
  for (const kind of ['deny', 'ask', 'allow'] as const) {
    const rule = rules.findIndex((candidate) => candidate.action === kind && ruleFits(candidate, call));
    if (rule !== -1) return { kind, by: 'rule', rule };
  }
  return null;
}

function byMode(mode: PermissionMode, call: CallFacts): Decision {
  const safe = call.effect === 'none' || ((mode === 'acceptEdits' || mode === 'auto') && call.isWorkspaceEdit);
  return { kind: safe ? 'allow' : 'ask', by: 'mode', rule: null };
}

function ruleFits({ action, tool, argument }: PermissionRule, { tool: name, subject }: CallFacts): boolean {
  if (!fits(tool, name)) return false;
  if (argument === undefined) return true;
  // It can't be checked: a rule made for this very tool holds, if it is one that guards.
  if (subject === null) return action !== 'allow' && tool === name;
  const how = action === 'allow' ? 'narrow' : 'broad';
  const one = (text: string) => subjectFits(argument, subject.kind, text, how);
  return how === 'broad' ? subject.names.some(one) : subject.names.length > 0 && subject.names.every(one);
}

function subjectFits(pattern: string, kind: Subject['kind'], text: string, how: Strictness): boolean {
  switch (kind) {
    case 'command':
      return commandFits(pattern, text, how);
    case 'path':
      return pathFits(pattern, text, how, false);
    case 'tree':
      return pathFits(pattern, text, how, true);
    case 'url':
      return urlFits(pattern, text, how);
    case 'text':
      return fits(pattern, text);
  }
}
