import { canonicalJson } from './hash.ts';
import type { GoalCheck } from './schema.ts';

/** How a check is called where people read of it. */
export function checkName(check: GoalCheck): string {
  if ('command' in check) return check.command;
  const wanted = check.expect === undefined ? '' : ` = ${canonicalJson(check.expect)}`;
  return `${check.tool} ${canonicalJson(check.arguments)}${wanted}`;
}
