import type { Decider, Signal } from '../../workflows/core/ends.ts';

export const DECIDERS: Readonly<Record<Decider, string>> = {
  model: 'the model',
  runtime: 'the runtime',
  user: 'a user',
  scheduler: 'the scheduler',
};

/** What made the decider decide, with the limit and the amount used where there is one. */
export function signalWords(signal: Signal): string {
  switch (signal.name) {
    case 'limit':
      return `limit ${signal.limit}: ${signal.used} of ${signal.allowed}`;
    case 'open_todos':
      return `${signal.count} open todos`;
    case 'retries_spent':
      return `${signal.cause} after ${signal.used} tries`;
    case 'provider_answer':
      return signal.status === undefined ? signal.cause : `${signal.cause}, HTTP ${signal.status}`;
    case 'engine':
      return `engine: ${signal.event}`;
    case 'fault':
      return `fault ${signal.type}`;
    case 'cancel_request':
    case 'approval':
    case 'hook':
      return signal.id === undefined ? signal.name : `${signal.name} ${signal.id}`;
    case 'model_stop':
    case 'model_refusal':
    case 'model_report':
      return signal.name;
  }
}
