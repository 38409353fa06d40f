import type { Connection } from '@temporalio/client';
import { SetupError } from '../../setup-error.ts';

export const SEARCH_ATTRIBUTES = [
  'PawlAgent',
  'PawlSession',
  'PawlTicket',
  'PawlEndReason',
  'PawlEndDetail',
  'PawlDecidedBy',
  'PawlWaitingFor',
  'PawlGoalStatus',
] as const;

/** `INDEXED_VALUE_TYPE_KEYWORD` of temporal/api/enums/v1/common.proto. */
const KEYWORD = 2;

/** Adds the search attributes that the namespace lacks. The server does not report a wrong type: we look. */
export async function ensureSearchAttributes(connection: Connection, namespace = 'default'): Promise<void> {
  const known = await list(connection, namespace);
  const missing = SEARCH_ATTRIBUTES.filter((name) => known[name] === undefined);
  if (missing.length > 0) {
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
  }
  const now = missing.length > 0 ? await list(connection, namespace) : known;
  const wrong = SEARCH_ATTRIBUTES.filter((name) => now[name] !== KEYWORD);
  if (wrong.length === 0) return;
  throw new SetupError(
    `Namespace ${namespace} has ${wrong.join(', ')} not as Keyword: remove them there, or set another namespace.`,
  );
}

async function list(connection: Connection, namespace: string): Promise<Record<string, number>> {
  const answer = await connection.operatorService.listSearchAttributes({ namespace });
  return answer.customAttributes as Record<string, number>;
}
