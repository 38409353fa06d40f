import type { Session } from '../sessions.ts';
import { duration, oneLine } from './format.ts';

/** A session as one line: what it does, what waits, whose it is. */
export function sessionLine(each: Session, nowMs: number): string {
  const doing = each.turn === null ? 'idle' : `turn ${each.turn} runs`;
  const waiting = each.waiting === 0 ? '' : `, ${each.waiting} waiting`;
  const fork = each.forkedFrom === null ? '' : `, forked from ${each.forkedFrom.session}`;
  const title = each.title === null ? '' : `  ${oneLine(each.title, 50)}`;
  const marks = `${each.plan ? ', plans' : ''}${each.state === 'archived' ? ', archived' : ''}`;
  return `${each.id}  ${doing}${waiting}${marks}${fork}  ${duration(nowMs - Date.parse(each.createdAt))} old  ${each.agent}${title}`;
}
