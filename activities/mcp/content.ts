import { type JsonObject, asArray, asObject, asText } from '../model/json.ts';
import { storable } from '../store/hash.ts';
import type { ToolResult } from '../tools/define-tool.ts';
import { fitText } from '../tools/text.ts';
import { MCP } from './servers.ts';

const LABEL_CHARS = 200;

/** What a server answered, as a result for the model: texts as they are, everything else described, never pasted. */
export function toResult(answer: JsonObject, chars: number): ToolResult {
  const parts = asArray(answer.content).map((part) => shown(asObject(part) ?? {}));
  const texts = parts.length > 0 ? parts : structured(answer);
  const text = texts.map((part) => part.text).join('\n') || '(The tool returned nothing.)';
  const whole = texts.map((part) => part.whole).join('\n');
  const fitting = fitText(text, chars);
  const isError = answer.isError === true;
  return {
    isError,
    text: fitting,
    ...(fitting === whole || whole === '' ? {} : { output: Buffer.from(storable(whole)).subarray(0, MCP.outputBytes) }),
    ...(isError ? { note: 'mcp_error' } : {}),
  };
}

/** `whole` has the text of embedded resources too: it can be paged through. */
interface Part {
  readonly text: string;
  readonly whole: string;
}

function structured({ structuredContent }: JsonObject): readonly Part[] {
  return structuredContent === undefined ? [] : [same(JSON.stringify(structuredContent))];
}

function shown(part: JsonObject): Part {
  switch (part.type) {
    case 'text':
      return same(asText(part.text));
    case 'image':
    case 'audio':
      return same(described([part.type, part.mimeType, bytes(asText(part.data))]));
    case 'resource':
      return resource(asObject(part.resource) ?? {});
    case 'resource_link':
      return same(
        described([
          'resource link',
          part.name,
          part.uri,
          part.mimeType,
          typeof part.size === 'number' ? `${part.size} bytes` : null,
        ]),
      );
    default:
      return same(described([`content of the unknown kind ${label(part.type) || '(none)'}`]));
  }
}

function resource({ uri, mimeType, text, blob }: JsonObject): Part {
  if (typeof text !== 'string') return same(described(['resource', uri, mimeType, bytes(asText(blob))]));
  const line = described(['resource', uri, mimeType, `${text.length} characters`]);
  return { text: line, whole: `${line}\n${text}` };
}

function described(facts: readonly unknown[]): string {
  const known = facts.map(label).filter((fact) => fact !== '');
  return `[${known.join(', ')}; not shown]`;
}

/** Names and addresses come from the server: one line, and not a long one. */
function label(fact: unknown): string {
  return typeof fact === 'string' ? fitText(fact.replace(/\s+/g, ' ').trim(), LABEL_CHARS) : '';
}

function bytes(base64: string): string {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return `${Math.max(0, Math.floor((base64.length * 3) / 4) - padding)} bytes`;
}

function same(text: string): Part {
  return { text, whole: text };
}
