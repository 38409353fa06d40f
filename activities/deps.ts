import type { Logger } from 'pino';
import type { Engine } from './engine/port.ts';
import type { Hooks } from './gate/hooks.ts';
import type { SchemaRules } from './model/lower-schema.ts';
import type { ModelPort } from './model/port.ts';
import type { HostIdentity, ProcessIdentity } from './process/identity.ts';
import type { CallMemory } from './store/call-memory.ts';
import type { Database } from './store/database.ts';
import type { Reporter } from './reports/port.ts';
import type { StoredAgent } from './store/schema.ts';
import type { StreamNotifier } from './store/notify.ts';
import type { ChainCache } from './store/transcript.ts';
import type { Masker } from './secrets/mask.ts';
import type { Registry } from './tools/registry.ts';

/** An agent, and which of its limits its own definition names. */
export interface NamedAgent {
  readonly agent: StoredAgent;
  readonly named: readonly string[];
}

/** Everything the activities reach the world through; the worker builds it once. */
export interface Deps {
  readonly database: Database;
  readonly chains: ChainCache;
  readonly calls: CallMemory;
  readonly notifier: StreamNotifier;
  readonly engine: Engine;
  /** The wire to a configured provider, by its name. */
  readonly model: (provider: string) => ModelPort;
  /** Which schemas a provider takes as the shape of a whole reply; null for one that takes none. */
  readonly nativeAnswers: (provider: string) => SchemaRules | null;
  readonly tools: Registry;
  /** A definition that may be started as a sub-agent, as the config has it now. */
  readonly agents: (name: string) => NamedAgent | null;
  readonly hooks: Hooks;
  /** Tells hooks what lies in the store for them. */
  readonly reporter: Reporter;
  /** Everything that is stored of a tool's doing goes through it. */
  readonly masker: Masker;
  readonly host: HostIdentity;
  readonly process: ProcessIdentity;
  readonly log: Logger;
}
