import type { Effect } from '../../workflows/core/tools.ts';
import type { Tool } from '../tools/define-tool.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { fitText } from '../tools/text.ts';
import type { HookFacts, HookFailure } from './hook-types.ts';
import type { Hooks } from './hooks.ts';
import { allowsAlways, type CallFacts, type Decision, decide, type Permissions } from './permissions.ts';
import { factsOf, namesOf, subjectOf } from './subject.ts';
import { DENIAL_TEXTS, REASON_CHARS } from './texts.ts';

export interface PlanMode {
  /** The one file that may be written, relative to the workspace; null: none. */
  readonly file: string | null;
}

export interface JudgedCall {
  readonly tool: Tool;
  /** As it was pinned when the call was stored; the more dangerous of this and the tool's own counts. */
  readonly effect: Effect;
  /** The raw text of the arguments. */
  readonly args: string;
}

export interface Guards {
  /** Set while the session plans. */
  readonly plan: PlanMode | null;
  readonly hooks: Hooks;
  readonly permissions: Permissions;
  readonly attended: boolean;
  readonly workspace: string;
  /** What hooks are told besides the call. */
  readonly session: string;
  readonly turn: string | null;
  /** Of the activity: a cancel is thrown, never taken for an answer. */
  readonly signal: AbortSignal;
}

export interface Denied {
  readonly kind: 'denied';
  readonly by: 'plan' | 'hook' | 'rule' | 'mode' | 'policy' | 'arguments';
  /** What the model is told. */
  readonly text: string;
}
/** `args`: the final arguments as raw text where a hook or a person changed them, else null. */
export interface Cleared {
  readonly kind: 'run';
  readonly args: string | null;
}
export interface Asks {
  readonly kind: 'ask';
  readonly args: string | null;
  readonly summary: { readonly tool: string; readonly subject: string | null };
}

export type Judgement = (Cleared | Denied | Asks) & { readonly failures: readonly HookFailure[] };

/** Plan, hooks, permissions, in this order; none is opened by another's yes, and all look at the final arguments. */
export async function judge(call: JudgedCall, guards: Guards): Promise<Judgement> {
  const original = await lookAt(call, call.args, guards);
  if (original.kind === 'denied') return { ...original, failures: [] };
  if (!guards.hooks.has('PreToolUse', call.tool.name)) return { ...permit(original, guards, null), failures: [] };

  const facts: HookFacts = {
    session: guards.session,
    turn: guards.turn,
    workspace: guards.workspace,
    tool: call.tool.name,
    effect: original.facts.effect,
    args: JSON.parse(original.canonical),
  };
  const { deny, rewrite, failures } = await guards.hooks.ask('PreToolUse', facts, guards.signal);
  if (deny !== null) return { kind: 'denied', by: 'hook', text: hookText(call.tool, deny), failures };
  if (rewrite === null) return { ...permit(original, guards, null), failures };

  const final = await lookAt(call, rewrite, guards);
  if (final.kind === 'denied') return { ...final, failures };
  return { ...permit(final, guards, rewrite === original.canonical ? null : rewrite), failures };
}

/**
 * For a call that a person has approved: once more before it runs, since plan and rules may have changed in the
 * days between, and with the arguments the person may have `edited`. Their yes answers an ask and opens nothing else.
 */
export async function judgeApproved(
  call: JudgedCall,
  edited: string | null,
  guards: Omit<Guards, 'hooks' | 'signal'>,
): Promise<Cleared | Denied> {
  const final = await lookAt(call, edited ?? call.args, guards);
  if (final.kind === 'denied') return final;
  const permitted = permit(final, { ...guards, attended: true }, edited);
  return permitted.kind === 'ask' ? { kind: 'run', args: edited } : permitted;
}

/** What the plan alone says of a call; null: nothing against it. */
export async function judgePlan(call: JudgedCall, guards: Pick<Guards, 'workspace' | 'plan'>): Promise<Denied | null> {
  const looked = await lookAt(call, call.args, guards);
  return looked.kind === 'denied' ? looked : null;
}

/** Whether a call of this tool may be anything but allowed; cheap, for the sampler. */
export function needsGate(
  tool: { readonly name: string; readonly effect: Effect },
  { plan, hooks, permissions }: Pick<Guards, 'plan' | 'permissions'> & { readonly hooks: Pick<Hooks, 'has'> },
): boolean {
  if (plan !== null && tool.effect !== 'none') return true;
  return hooks.has('PreToolUse', tool.name) || !allowsAlways(permissions, tool);
}

interface Looked {
  readonly kind: 'looked';
  readonly canonical: string;
  readonly facts: CallFacts;
  readonly summary: Asks['summary'];
}

/** Everything that is decided on one version of the arguments alone: whether they are valid, and the plan. */
async function lookAt(
  { tool, effect }: JudgedCall,
  raw: string,
  { workspace, plan }: Pick<Guards, 'workspace' | 'plan'>,
): Promise<Looked | Denied> {
  const parsed = parseArguments(tool, raw);
  if (!parsed.ok) return { kind: 'denied', by: 'arguments', text: parsed.text };
  let subject: ReturnType<typeof subjectOf>;
  try {
    subject = subjectOf(tool, parsed.args);
  } catch {
    return { kind: 'denied', by: 'arguments', text: DENIAL_TEXTS.noSubject(tool.name) };
  }
  const facts = await factsOf(tool, effect, subject, workspace);
  if (plan !== null && !(await planAllows(plan, facts, workspace))) {
    return { kind: 'denied', by: 'plan', text: DENIAL_TEXTS.plan(tool.name, plan.file) };
  }
  const shown = subject && fitText(subject.text, REASON_CHARS);
  return { kind: 'looked', canonical: parsed.canonical, facts, summary: { tool: tool.name, subject: shown } };
}

async function planAllows({ file }: PlanMode, call: CallFacts, workspace: string): Promise<boolean> {
  if (call.effect === 'none') return true;
  if (file === null || !call.isWorkspaceEdit || call.subject === null) return false;
  const allowed = new Set(await namesOf(workspace, file));
  return call.subject.names.every((name) => allowed.has(name));
}

function permit(
  { facts, summary }: Looked,
  { permissions, attended }: Pick<Guards, 'permissions' | 'attended'>,
  args: string | null,
): Cleared | Denied | Asks {
  const decision = decide(permissions, facts, attended);
  switch (decision.kind) {
    case 'allow':
      return { kind: 'run', args };
    case 'ask':
      return { kind: 'ask', args, summary };
    case 'deny':
      return { kind: 'denied', by: decision.by, text: denialText(facts.tool, decision) };
  }
}

function denialText(tool: string, { by, rule }: Decision): string {
  switch (by) {
    case 'rule':
      return DENIAL_TEXTS.rule(tool, rule ?? 0);
    case 'mode':
      return DENIAL_TEXTS.mode(tool);
    case 'policy':
      return DENIAL_TEXTS.policy(tool);
  }
}

function hookText({ name }: Tool, reason: string): string {
  return DENIAL_TEXTS.hook(name, fitText(reason.trim(), REASON_CHARS) || 'no reason was given');
}
