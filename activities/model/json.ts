/** Reading what a stranger sent: a wrong type is an absent value. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects in a list. */
export function asObjects(value: unknown): readonly JsonObject[] {
  return asArray(value).flatMap((item) => {
    const object = asObject(item);
    return object ? [object] : [];
  });
}

export function asText(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The parsed value, or undefined where the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
