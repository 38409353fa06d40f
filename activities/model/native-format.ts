import { lowerSchema, type SchemaRules } from './lower-schema.ts';
import type { AnswerFormat } from './port.ts';

export interface NativeFormat {
  readonly name: string;
  readonly schema: Record<string, unknown>;
  /** In strict mode fields that may be left out come as null. */
  readonly strict: boolean;
}

/**
 * The shape of a whole reply as the provider takes it, strict where it can be said so; null where the provider
 * can't be told, so that a tool has to stand in for it. The original schema judges what comes.
 */
export function nativeFormat(answer: AnswerFormat | undefined, rules: SchemaRules): NativeFormat | null {
  if (!answer) return null;
  const lowered = lowerSchema(answer.schema, rules === 'plain' ? rules : 'openai_strict');
  return lowered.ok ? { name: answer.name, schema: lowered.schema, strict: lowered.strict } : null;
}
