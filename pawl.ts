export {
  defineTool,
  type Tool,
  type ToolContext,
  type ToolDefinition,
  type ToolResult,
  type Undo,
} from './activities/tools/define-tool.ts';
export type { Hook, HookAnswer, HookEvent, HookFunction, HookInput } from './activities/gate/hook-types.ts';
export { openPullRequestTool, type PullRequestToolOptions } from './activities/tools/open-pull-request.ts';
export { pushBranchTool, type PushToolOptions } from './activities/tools/push-branch.ts';
export {
  type AgentDefinition,
  defineAgent,
  defineConfig,
  type PawlDefinition,
  type ProviderDefinition,
} from './worker/config/define.ts';
