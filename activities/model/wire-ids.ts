import type { Shown } from './port.ts';

/** The longest tool call id that every provider takes back. */
const ID_CHARS = 40;

/**
 * Call ids of one request, by message and ordinal. A provider's own id is kept where it is the first of its
 * kind; a blank, long or repeated one is replaced by its position, the same in every build of this chain.
 */
export function wireIds(messages: readonly Shown[]): readonly (readonly string[])[] {
  const own = new Set(
    messages.flatMap((message) => (message.kind === 'assistant' ? message.calls.map(({ id }) => id) : [])),
  );
  const taken = new Set<string>();
  return messages.map((message, n) => {
    if (message.kind !== 'assistant') return [];
    return message.calls.map(({ id }, ordinal) => {
      const usable = id.trim() !== '' && id.length <= ID_CHARS && !taken.has(id);
      const chosen = usable ? id : freeId(`call_${n}_${ordinal}`, own);
      taken.add(chosen);
      return chosen;
    });
  });
}

function freeId(wanted: string, own: ReadonlySet<string>): string {
  return own.has(wanted) ? freeId(`${wanted}_`, own) : wanted;
}
