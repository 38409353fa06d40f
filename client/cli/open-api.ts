import { SetupError } from '../../worker/setup-error.ts';
import { createApp } from '../http/app.ts';
import { type HttpServer, startHttp } from '../http/start.ts';
import type { Runs } from '../runs.ts';
import type { Output } from './output.ts';

export interface ApiOptions {
  readonly host?: string | undefined;
  /** Asked for by name: this one or none. */
  readonly port?: number | undefined;
  readonly hosts?: readonly string[] | undefined;
}

/** Starts the HTTP API, or says in a SetupError why it can't be. */
export async function openApi(runs: Runs, { host, port, hosts }: ApiOptions, output: Output): Promise<HttpServer> {
  const log = { error: (facts: unknown) => output.note(`A request failed: ${faultClass(facts)}`) };
  const app = createApp(runs, { hosts: hosts ?? [], log: log as never });
  const started = await startHttp({
    app,
    portAskedByName: port !== undefined,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
  });
  switch (started.kind) {
    case 'listening':
      return started.server;
    case 'port_busy':
      throw new SetupError(`Port ${started.port} is in use: end what uses it, or name another with --port.`);
    case 'refused':
      throw new SetupError(`The API can't listen on ${started.why}: name another --host or --port.`);
  }
}

function faultClass(facts: unknown): string {
  const { err } = facts as { err?: unknown };
  return err instanceof Error ? err.name : 'unknown';
}
