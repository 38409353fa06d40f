/** The command line names something that there is not, or that may not be: one sentence, and exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
