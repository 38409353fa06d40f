/** Throttling that talks about tokens: looked at first, since a wait taken for an overflow destroys history. */
const NOT_OVERFLOW: readonly RegExp[] = [
  /\brate.?limit/i,
  /\bthrottl/i,
  /\b(please wait|slow down|try again (in|later))\b/i,
  /\bper[ -](second|minute|hour|day|month)\b/i,
  /\b[rt]p[mdh]\b/i,
  /\btoo many requests\b/i,
  /\bquota\b/i,
  /\b(image|picture|photo|audio|video|file|attachment)s?\b.{0,40}\b(too large|too big|exceed)/i,
];

const OVERFLOW: readonly RegExp[] = [
  /context[_ ]length[_ ]exceeded/i,
  /maximum context length/i,
  /\b(exceed\w*|greater than|larger than|longer than|beyond)\b.{0,60}\bcontext (window|size|length|limit)\b/i,
  /\bcontext (window|size|length)\b.{0,40}\b(exceed|overflow|too (small|long))/i,
  /model_context_window_exceeded/i,
  /\b(prompt|input|request|conversation|messages?)\b.{0,20}\b(is|are) too long\b/i,
  /\binput token count\b.{0,40}\bexceeds\b/i,
  /\bmaximum prompt length\b/i,
  /\breduce the length of (the|your) (messages|prompt|input)\b/i,
  /\bexceeded model token limit\b/i,
  /\btoken limit exceeded\b/i,
  /\btoo many (input )?tokens\b/i,
  /\bprompt\b.{0,40}\bexceeds the limit of \d+/i,
  /\b(prompt|input)\b.{0,40}\bexceeds (the )?max(imum)? (input |prompt )?length\b/i,
  /\blonger than the maximum model length\b/i,
  /\binputs?\W.{0,30}\bmust (have less|have fewer|be <=?)\W{0,3}(than )?\d+/i,
  /\brange of input length\b/i,
  /\btoken length exceeds?\b/i,
  /\btokens_limit_reached\b/i,
];

const IMAGE_REFUSED =
  /\b(image|picture|photo)s?\b.{0,60}\b(too large|too big|too many|exceed\w*|not supported|unsupported|maximum|invalid)/i;

/** Whether the provider says that the conversation does not fit its window. */
export function saysOverflow(text: string): boolean {
  if (isBiggerThanItsLimit(text)) return true;
  return !NOT_OVERFLOW.some((guard) => guard.test(text)) && OVERFLOW.some((pattern) => pattern.test(text));
}

const WINDOW: readonly RegExp[] = [
  /\+\s*[\d,]+\s*>\s*([\d,]+)/,
  /maximum (?:context|prompt|model) length (?:is|of)\D{0,20}([\d,]+)/i,
  /\bcontext (?:window|size|length)\b\D{0,40}([\d,]+)/i,
  />\s*([\d,]+)\s*(?:tokens? )?maximum/i,
  /\blimit:?(?: of)?\s+([\d,]+)/i,
];
/** Anything smaller is some other number. */
const LEAST_WINDOW_TOKENS = 1_000;

/** The size of the window that an overflow names, in tokens; null where it names none. */
export function namedWindow(text: string): number | null {
  for (const pattern of WINDOW) {
    const tokens = Number(pattern.exec(text)?.[1]?.replaceAll(',', ''));
    if (tokens >= LEAST_WINDOW_TOKENS) return tokens;
  }
  return null;
}

export function saysImageRefused(text: string): boolean {
  // Codes say it with underscores: image_too_large.
  return IMAGE_REFUSED.test(text.replaceAll('_', ' '));
}

const LIMIT_AND_REQUEST = /\blimit:?\s+([\d,]+)\b.{0,60}\brequested:?\s+([\d,]+)/i;

/** A request larger than the limit for a whole minute is not cured by waiting. */
function isBiggerThanItsLimit(text: string): boolean {
  const [, limit, requested] = LIMIT_AND_REQUEST.exec(text) ?? [];
  if (!limit || !requested || /\b(requests|images?) per\b|\brpm\b/i.test(text)) return false;
  return Number(requested.replaceAll(',', '')) > Number(limit.replaceAll(',', ''));
}
