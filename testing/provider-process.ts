/**
 * The scripted provider as a process of its own, for tests that kill everything else:
 * `node --import tsx testing/provider-process.ts <module> [port]`. The module exports
 * `rules: (request) => Reply` and, if it likes, `options`. Prints one JSON line, `{"baseUrl", "pid"}`.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ScriptedProviderOptions, startScriptedProvider } from './scripted-provider.ts';

interface RulesModule {
  readonly rules: NonNullable<ScriptedProviderOptions['rules']>;
  readonly options?: Omit<ScriptedProviderOptions, 'rules' | 'script' | 'port'>;
}

const [path, port = '0'] = process.argv.slice(2);
if (!path) throw new Error('usage: provider-process.ts <module that exports rules> [port]');
const { rules, options } = (await import(pathToFileURL(resolve(path)).href)) as RulesModule;
if (typeof rules !== 'function') throw new Error(`${path} exports no function named rules`);

const provider = await startScriptedProvider({ ...options, rules, port: Number(port) });
process.stdout.write(`${JSON.stringify({ baseUrl: provider.baseUrl, pid: process.pid })}\n`);

// Forked with an IPC channel, it goes when its parent goes.
process.on('disconnect', () => process.exit(0));
