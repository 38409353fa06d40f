import type { Shown } from '../model/port.ts';
import type { Link } from '../store/transcript.ts';
import type { Gauge } from './gauge.ts';

/** How far a build has come. */
export interface Built {
  readonly shown: Shown[];
  /** Tokens of everything that is sent, by bytes. */
  readonly sum: number;
  readonly gauge: Gauge | null;
  /** Directives that are shown. */
  readonly directives: number;
}

/** About one for each turn that runs: the next build of a chain replaces the one that it goes on from. */
const KEPT = 64;
const builds = new Map<string, Built>();

/** Builds by the reply that they led to, so that the next one has only new messages to look at. */
export class KnownBuilds {
  /** Whatever else a build depends on. */
  readonly #frame: string;
  #from: string | null = null;

  constructor(frame: string) {
    this.#frame = frame;
  }

  /** The newest one, and the place of its reply. */
  newest(links: readonly Link[]): { readonly at: number; readonly built: Built } | null {
    for (let at = links.length - 1; at >= 0; at -= 1) {
      const link = links[at];
      // It changes what is shown of everything before it.
      if (!link || (link.body.kind === 'reminder' && link.body.code === 'images_stripped')) return null;
      const built = link.body.kind === 'assistant' ? builds.get(this.#key(link.hash)) : undefined;
      if (!built) continue;
      this.#from = this.#key(link.hash);
      return { at, built };
    }
    return null;
  }

  keep(reply: string | undefined, built: Built): void {
    if (reply === undefined) return;
    if (this.#from !== null) builds.delete(this.#from);
    builds.set(this.#key(reply), built);
    const [oldest] = builds.keys();
    if (builds.size > KEPT && oldest !== undefined) builds.delete(oldest);
  }

  #key(reply: string): string {
    return `${this.#frame} ${reply}`;
  }
}
