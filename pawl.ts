export { defineTool, type Tool, type ToolContext, type ToolDefinition, type ToolResult } from './activities/tools/define-tool.ts';
export {
  type AgentDefinition,
  defineAgent,
  defineConfig,
  type PawlDefinition,
  type ProviderDefinition,
} from './worker/config/define.ts';
