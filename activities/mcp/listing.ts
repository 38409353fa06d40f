import { asArray, asObject, type JsonObject } from '../model/json.ts';

/** A tool as its server describes it. */
export interface RemoteTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly readOnly: boolean;
  readonly idempotent: boolean;
}

/**
 * Reads a page of `tools/list`. The library's own schema would refuse the whole list for one tool that it does not
 * like, such as one whose arguments have alternatives at the top; here only what can't be called is left out.
 */
export function readListing(page: JsonObject): { readonly tools: readonly RemoteTool[]; readonly leftOut: number } {
  const listed = asArray(page.tools);
  const tools = listed.map(asObject).flatMap((tool) => (tool ? readTool(tool) : []));
  return { tools, leftOut: listed.length - tools.length };
}

function readTool(tool: JsonObject): RemoteTool[] {
  const { name, title, description, inputSchema, execution } = tool;
  const schema = inputSchema === undefined ? {} : asObject(inputSchema);
  if (typeof name !== 'string' || !schema || !mayBeObject(schema.type)) return [];
  // Such a tool must be polled as a task; nobody here does.
  if (asObject(execution)?.taskSupport === 'required') return [];
  const annotations = asObject(tool.annotations);
  const texts = [description, title].filter((text) => typeof text === 'string' && text.trim() !== '');
  return [
    {
      name,
      description: (texts[0] as string | undefined)?.trim() ?? '',
      inputSchema: schema,
      readOnly: annotations?.readOnlyHint === true,
      idempotent: annotations?.idempotentHint === true,
    },
  ];
}

function mayBeObject(type: unknown): boolean {
  return type === undefined || type === 'object' || asArray(type).includes('object');
}
