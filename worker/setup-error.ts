/** Something about the machine or the configuration is missing: one sentence that says what to do. */
export class SetupError extends Error {
  override readonly name = 'SetupError';
}
