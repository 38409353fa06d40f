import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { RecordedRequest } from './scripted-provider.ts';

export interface ProviderProcess {
  readonly baseUrl: string;
  readonly pid: number;
  /** What came in so far, without the authorization header. */
  seen(): Promise<{
    readonly requests: readonly Omit<RecordedRequest, 'settled' | 'sent'>[];
    readonly faults: readonly string[];
  }>;
  stop(): Promise<void>;
}

/** Runs the scripted provider in a process that ends with ours. @param rulesModule path of a module exporting `rules` */
export async function startProviderProcess(rulesModule: string, port = 0): Promise<ProviderProcess> {
  const script = fileURLToPath(new URL('./provider-process.ts', import.meta.url));
  const child = fork(script, [rulesModule, String(port)], {
    execArgv: ['--import', 'tsx'],
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const exited = once(child, 'exit');
  const { baseUrl, pid } = await Promise.race([
    firstLine(child.stdout as NodeJS.ReadableStream),
    exited.then(() => Promise.reject(new Error('the scripted provider process ended before it listened'))),
  ]);
  return {
    baseUrl,
    pid,
    seen: async () => (await fetch(new URL('/requests', baseUrl))).json() as ReturnType<ProviderProcess['seen']>,
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

async function firstLine(stdout: NodeJS.ReadableStream): Promise<{ baseUrl: string; pid: number }> {
  const lines = createInterface({ input: stdout });
  const [line] = (await once(lines, 'line')) as [string];
  return JSON.parse(line) as { baseUrl: string; pid: number };
}
