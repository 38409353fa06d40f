import { askUser } from './ask-user.ts';
import type { Tool } from './define-tool.ts';
import { editFile } from './edit-file.ts';
import { getGoal } from './get-goal.ts';
import { type HttpOptions, httpGetTool } from './http-get.ts';
import { httpRequestTool } from './http-request.ts';
import { listFiles } from './list-files.ts';
import { readFile } from './read-file.ts';
import { readOutput } from './read-output.ts';
import { reportBlocked } from './report-blocked.ts';
import { searchText } from './search-text.ts';
import { shell } from './shell.ts';
import { spawnAgent } from './spawn-agent.ts';
import { todoWrite } from './todo-write.ts';
import { updateGoal } from './update-goal.ts';
import { waitAgents } from './wait-agents.ts';
import { waitFor } from './wait-for.ts';
import { writeFile } from './write-file.ts';

/** Tools that every agent may name. Those with files and commands are rooted in the session's workspace. */
export function builtinToolsFor(http: HttpOptions): readonly Tool[] {
  return [
    readFile,
    listFiles,
    searchText,
    writeFile,
    editFile,
    shell,
    readOutput,
    todoWrite,
    askUser,
    waitFor,
    reportBlocked,
    spawnAgent,
    waitAgents,
    getGoal,
    updateGoal,
    httpGetTool(http),
    httpRequestTool(http),
  ] as readonly Tool[];
}

export const builtinTools = builtinToolsFor({ allow: [] });
