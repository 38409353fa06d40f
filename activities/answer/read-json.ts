const FENCED = /```[\w-]*[ \t]*\r?\n?([\s\S]*?)```/g;

/** JSON values that a text may mean, the likeliest first: the whole of it, what stands in fences, what braces hold. */
export function jsonIn(text: string): unknown[] {
  const fenced = [...text.matchAll(FENCED)].map(([, inside]) => inside ?? '').reverse();
  return [text, ...fenced, between(text, '{', '}'), between(text, '[', ']')].flatMap(parsed);
}

function between(text: string, open: string, close: string): string {
  return text.slice(Math.max(0, text.indexOf(open)), text.lastIndexOf(close) + 1);
}

function parsed(text: string): unknown[] {
  try {
    return text.trim() === '' ? [] : [JSON.parse(text) as unknown];
  } catch {
    return [];
  }
}
