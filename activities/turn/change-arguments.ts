import { eq } from 'drizzle-orm';
import type { Tx } from '../store/database.ts';
import { sha256, storable } from '../store/hash.ts';
import type { CallRow } from '../store/ledger.ts';
import { call, effect } from '../store/schema.ts';

/** The arguments that count from now on; what the model wrote stays in its message. Returns the final ones. */
export async function changeArguments(tx: Tx, row: CallRow, args: string | null): Promise<string> {
  if (args === null || args === row.arguments) return row.arguments;
  const changed = storable(args);
  const argumentsHash = sha256(changed);
  await tx.update(call).set({ arguments: changed, argumentsHash }).where(eq(call.key, row.key));
  await tx.update(effect).set({ argumentsHash }).where(eq(effect.key, row.key));
  return changed;
}
