/**
 * Tells hooks what has happened, beside the work and never in its way: what is to be told lies in the store,
 * put there with what it tells of. Each is told at least once; a process that dies leaves it to another.
 */
export interface Reporter {
  /** Something may be there to be told. Returns at once. */
  wake(): void;
  /** Begins nothing more, and waits for what is being told. */
  close(): Promise<void>;
}
