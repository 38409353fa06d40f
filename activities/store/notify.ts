import type pg from 'pg';

const CHANNEL = 'pawl_stream';
const EVERY_MS = 50;

/** Tells followers that a stream moved: its id only, at most every 50 ms, never inside a transaction. */
export class StreamNotifier {
  readonly #pool: pg.Pool;
  readonly #waiting = new Set<string>();
  #timer: NodeJS.Timeout | null = null;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  moved(stream: string): void {
    this.#waiting.add(stream);
    this.#timer ??= setTimeout(() => this.#send(), EVERY_MS);
  }

  #send(): void {
    this.#timer = null;
    const streams = [...this.#waiting];
    this.#waiting.clear();
    // A lost notice costs a follower one poll interval, nothing else.
    this.#pool.query('select pg_notify($1, stream) from unnest($2::text[]) stream', [CHANNEL, streams]).catch(() => {});
  }

  close(): void {
    if (this.#timer) clearTimeout(this.#timer);
  }
}

type Wake = () => void;

/** One LISTEN connection a process. Followers also poll, so an outage of this connection only slows them. */
export class StreamListener {
  readonly #connect: () => pg.Client;
  readonly #followers = new Map<string, Set<Wake>>();
  #client: pg.Client | null = null;

  constructor(connect: () => pg.Client) {
    this.#connect = connect;
  }

  /** Calls `wake` whenever the stream moved; returns the way to stop that. */
  async follow(stream: string, wake: Wake): Promise<() => void> {
    const wakes = this.#followers.get(stream) ?? new Set();
    this.#followers.set(stream, wakes.add(wake));
    await this.#listen();
    return () => {
      wakes.delete(wake);
      if (wakes.size === 0) this.#followers.delete(stream);
    };
  }

  async #listen(): Promise<void> {
    if (this.#client) return;
    const client = this.#connect();
    this.#client = client;
    const forget = () => {
      if (this.#client === client) this.#client = null;
    };
    client.on('error', forget);
    client.on('end', forget);
    client.on('notification', ({ payload }) => {
      for (const wake of this.#followers.get(payload ?? '') ?? []) wake();
    });
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
    } catch {
      forget();
    }
  }

  async close(): Promise<void> {
    await this.#client?.end().catch(() => {});
  }
}
