import { z } from 'zod';
import { ANSWER_TOOL } from '../../workflows/core/ending-checks/structured-output.ts';
import type { StoredTool } from '../store/schema.ts';
import type { Tool } from './define-tool.ts';
import { fitText } from './text.ts';

/** What every provider accepts as a function name. */
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const UNKNOWN_TEXT_CHARS = 2_000;

export type Lookup = { readonly ok: true; readonly tool: Tool } | { readonly ok: false; readonly text: string };

export interface Registry {
  readonly names: readonly string[];
  /** Finds the tool of a call. `offered`: the names the agent has; a tool that it was not given does not exist for it. */
  lookup(name: string, offered?: readonly string[]): Lookup;
  /** What is stored and shown to the model, in the order of the names. Throws on a name that is not registered. */
  describe(names: readonly string[]): StoredTool[];
  /** For tools that come and go: looks again which there are. */
  refresh?(): Promise<void>;
}

/** Throws on what would fail later: names that are taken or refused by providers, inputs that are no JSON object. */
export function createRegistry(tools: readonly Tool[]): Registry {
  const byName = new Map<string, { readonly tool: Tool; readonly stored: StoredTool }>();
  for (const tool of tools) {
    if (!NAME.test(tool.name)) throw new Error(`Tool name "${tool.name}" must match ${NAME.source}.`);
    if (tool.name === ANSWER_TOOL)
      throw new Error(`The tool name "${ANSWER_TOOL}" is taken: it hands in structured answers.`);
    if (byName.has(tool.name)) throw new Error(`There are two tools named "${tool.name}".`);
    byName.set(tool.name, { tool, stored: storedTool(tool) });
  }
  const names = [...byName.keys()];
  return {
    names,
    lookup(name, offered = names) {
      const found = offered.includes(name) ? byName.get(name) : undefined;
      return found === undefined ? { ok: false, text: unknownTool(name, offered) } : { ok: true, tool: found.tool };
    },
    describe: (wanted) =>
      wanted.map((name) => {
        const found = byName.get(name);
        if (found === undefined) throw new Error(`There is no tool named "${name}". Registered: ${names.join(', ')}.`);
        return found.stored;
      }),
  };
}

function storedTool(tool: Tool): StoredTool {
  const { name, description, effect, runs } = tool;
  return { name, description, parameters: jsonSchemaOf(tool), effect, runs };
}

function jsonSchemaOf(tool: Tool): Record<string, unknown> {
  const whole = 'jsonSchema' in tool.input ? tool.input.jsonSchema : z.toJSONSchema(tool.input, { io: 'input' });
  const { $schema: _, '~standard': __, ...schema } = whole as Record<string, unknown>;
  if (schema.type !== 'object') throw new Error(`The input of tool "${tool.name}" must be an object schema.`);
  return schema;
}

function unknownTool(name: string, offered: readonly string[]): string {
  const known = offered.length === 0 ? 'You have no tools.' : `Your tools are: ${offered.join(', ')}.`;
  return fitText(`There is no tool named "${fitText(name, 100)}". ${known}`, UNKNOWN_TEXT_CHARS);
}
