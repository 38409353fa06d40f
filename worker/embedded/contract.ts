import type { ServerName } from './server-process.ts';

export interface EmbeddedOptions {
  /** The absolute `.pawl` folder; made if it is missing. */
  readonly home: string;
  /** From TEMPORAL_ADDRESS: then no Temporal server is started. */
  readonly temporalAddress?: string;
  /** From DATABASE_URL: then no PostgreSQL is started. */
  readonly databaseUrl?: string;
  /** Asked for by name: busy is an error. Else 7233 and 8233, or free ones. */
  readonly ports?: { readonly temporal?: number; readonly ui?: number };
  onProgress(line: string): void;
}

export interface EmbeddedServers {
  readonly temporalAddress: string;
  readonly temporalUiUrl: string | null;
  readonly databaseUrl: string;
  /** False: another process owns the servers, and stop() leaves them alone. */
  readonly owner: boolean;
  /** What the owner has published; null while it has not. */
  readonly apiUrl: string | null;
  /** Tells those who join later. Does nothing for one who joined. */
  publish(facts: { readonly apiUrl: string }): void;
  /** The servers that this process owns and that run now. */
  pids(): Partial<Record<ServerName, number>>;
  /** Resolves when a server died and could not be kept running; never for one who joined. */
  readonly exited: Promise<ServerName>;
  stop(): Promise<void>;
}
