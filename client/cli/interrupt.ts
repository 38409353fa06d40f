import { EXIT } from './exit-code.ts';

export interface Interrupt {
  readonly signal: AbortSignal;
  release(): void;
}

/** Ctrl-C and its like: the first asks to stop in order, the second does not ask. */
export function onInterrupt(first: () => void): Interrupt {
  const asked = new AbortController();
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const handle = () => {
    if (asked.signal.aborted) process.exit(EXIT.interrupted);
    first();
    asked.abort();
  };
  for (const name of names) process.on(name, handle);
  return {
    signal: asked.signal,
    release: () => {
      for (const name of names) process.off(name, handle);
    },
  };
}

export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
