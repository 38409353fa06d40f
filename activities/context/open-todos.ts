import type { Message } from '../../workflows/core/transcript.ts';
import { asArray, asObject, asText, parseJson } from '../model/json.ts';
import { todoWrite } from '../tools/todo-write.ts';

/**
 * The unfinished items of the newest list that was kept; the list is nowhere but in the transcript. `agents`: how many
 * sub-agents work in the background; while there are any, what is in progress is theirs.
 */
export function openTodos(messages: readonly Message[], agents = 0): readonly string[] {
  for (const [at, message] of [...messages.entries()].reverse()) {
    if (message.kind !== 'assistant') continue;
    const results = resultsAfter(messages, at);
    const ordinal = message.calls.findLastIndex(({ name }, n) => name === todoWrite.name && results.has(n));
    const call = message.calls[ordinal];
    if (call) return unfinished(call.arguments, agents > 0);
  }
  const summary = messages.findLast(({ kind }) => kind === 'compaction');
  if (summary?.kind !== 'compaction') return [];
  const open = summary.todos.filter((line) => agents === 0 || !line.startsWith(`- [${IN_PROGRESS}]`));
  return open.map((line) => line.replace(/^- \[\w+\] /, ''));
}

/** Ordinals of the calls that went well. */
function resultsAfter(messages: readonly Message[], at: number): ReadonlySet<number> {
  const rest = messages.slice(at + 1);
  const next = rest.findIndex(({ kind }) => kind === 'assistant');
  const own = next === -1 ? rest : rest.slice(0, next);
  return new Set(own.flatMap((each) => (each.kind === 'tool_result' && !each.isError ? [each.ordinal] : [])));
}

const IN_PROGRESS = 'in_progress';

function unfinished(args: string, isBacked: boolean): string[] {
  return asArray(asObject(parseJson(args))?.['todos']).flatMap((each) => {
    const todo = asObject(each);
    if (!todo || todo['status'] === 'completed' || (isBacked && todo['status'] === IN_PROGRESS)) return [];
    return [asText(todo['content'])];
  });
}
