import { matchesName } from '../mcp/names.ts';
import { asArray, asObject, parseJson } from '../model/json.ts';
import type { StoredAgent, ToolCheck } from '../store/schema.ts';
import type { Tool } from '../tools/define-tool.ts';
import { fitInput } from '../tools/parse-arguments.ts';
import type { Lookup } from '../tools/registry.ts';
import { fitText } from '../tools/text.ts';

export type UsableCheck =
  | { readonly ok: true; readonly tool: Tool; readonly args: unknown }
  /** One sentence that says what to do. */
  | { readonly ok: false; readonly why: string };

const FAULTS_CHARS = 300;

/** Whether the agent has the tool: only then may it be a check of its goals. */
export function hasTool({ name, tools }: Pick<StoredAgent, 'name' | 'tools'>, check: ToolCheck): UsableCheck | null {
  if (tools.some((pattern) => matchesName(pattern, check.tool))) return null;
  return no(`The agent ${name} has no tool ${check.tool} to check with: name one of ${tools.join(', ')}.`);
}

/** Whether a tool may be called after each turn, with these arguments. */
export function usableCheck(check: ToolCheck, found: Lookup): UsableCheck {
  if (!found.ok) return no(`There is no tool ${check.tool} to check with: name another one, or give a command.`);
  const { tool } = found;
  if (tool.runs !== 'activity')
    return no(`The tool ${tool.name} waits, so it can check nothing: name a tool that reads, or give a command.`);
  if (tool.effect !== 'none' && tool.effect !== 'idempotent')
    return no(
      `The tool ${tool.name} may do something each time it is called (its effect is ${tool.effect}): check with a tool that only reads, or give a command.`,
    );
  const fitted = fitInput(tool.input, check.arguments);
  if (fitted.ok) return { ok: true, tool, args: fitted.args };
  const faults = fitted.faults.map(({ path, message }) => [...path.map(String), message].join(': ')).join('; ');
  return no(`The arguments of the check ${tool.name} do not fit: ${fitText(faults, FAULTS_CHARS)}.`);
}

function no(why: string): UsableCheck & { readonly ok: false } {
  return { ok: false, why };
}

/** Whether a result is what the check wants of it. */
export function isExpected(expect: unknown, text: string): boolean {
  return typeof expect === 'string' ? text.trim() === expect.trim() : contains(parseJson(text), expect);
}

/** An object may have more fields than are wanted; everything else is the same. */
function contains(found: unknown, wanted: unknown): boolean {
  const fields = asObject(wanted);
  if (fields) {
    const object = asObject(found);
    return (
      object !== null &&
      Object.entries(fields).every(([name, value]) => Object.hasOwn(object, name) && contains(object[name], value))
    );
  }
  if (!Array.isArray(wanted)) return found === wanted;
  const items = asArray(found);
  return Array.isArray(found) && items.length === wanted.length && wanted.every((each, n) => contains(items[n], each));
}
