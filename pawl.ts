export {
  defineTool,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
} from './activities/tools/define-tool.ts';
export { openPullRequestTool, type PullRequestToolOptions } from './activities/tools/open-pull-request.ts';
export {
  type AgentDefinition,
  defineAgent,
  defineConfig,
  type PawlDefinition,
  type ProviderDefinition,
} from './worker/config/define.ts';
