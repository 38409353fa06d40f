const NAMED_SECRET =
  /\b((?:[\w-]*(?:api[-_ ]?key|password|passwd|pwd|secret|token|credential)|key|authorization)(?: provided)?["']?\s*[=:]\s*["']?)(?!\*\*\*)[^\s"',;}]+/gi;

const MASKS: readonly (readonly [RegExp, string])[] = [
  [/:\/\/[^\s/@]+@/g, '://***@'],
  [/\b(bearer|basic)\s+[\w.~+/=-]{4,}/gi, '$1 ***'],
  [NAMED_SECRET, '$1***'],
  [/\b(?:sk|pk|rk|xai|gsk|key|ghp|gho|ghs|github_pat|xox[a-z])[-_][\w*-]{4,}/gi, '***'],
  [/\bAIza[\w-]{10,}/g, '***'],
  [/\beyJ[\w-]+\.[\w.-]+/g, '***'],
  [/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, '***'],
  [/\b(?=[\w-]*\d)[\w-]{32,}\b/g, '***'],
];

const NOTE_CHARS = 200;

/** The first line of a text, without secrets and addresses, at most 200 characters. */
export function redactLine(text: string, secrets: readonly string[] = []): string {
  const [line = ''] = text.trim().split(/[\r\n]/, 1);
  // Cut generously first: masking is never done on megabytes, and never on a secret cut in two at the end.
  const known = secrets
    .filter((secret) => secret.length > 3)
    .reduce((rest, secret) => rest.replaceAll(secret, '***'), line.slice(0, 2_000));
  const masked = MASKS.reduce((rest, [pattern, mask]) => rest.replace(pattern, mask), known);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal codes must not reach a terminal
  return clip(masked.replace(/[\u0000-\u001f\u007f]+/g, ' '));
}

function clip(text: string): string {
  if (text.length <= NOTE_CHARS) return text;
  return `${text.slice(0, NOTE_CHARS - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}

/** Class, status and first line of a failure: what an operator may see without seeing content. */
export function noteOf(
  failure: { readonly kind: string; readonly status?: number },
  text: string,
  secrets: readonly string[] = [],
): string {
  const head = failure.status === undefined ? failure.kind : `${failure.kind} ${failure.status}`;
  return redactLine(text.trim() === '' ? head : `${head}: ${text.trim()}`, secrets);
}
