import type { Tool } from './define-tool.ts';
import { editFile } from './edit-file.ts';
import { listFiles } from './list-files.ts';
import { readFile } from './read-file.ts';
import { searchText } from './search-text.ts';
import { shell } from './shell.ts';
import { writeFile } from './write-file.ts';

/** Tools that every agent may name. All of them are rooted in the session's workspace. */
export const builtinTools: readonly Tool[] = [readFile, listFiles, searchText, writeFile, editFile, shell];
