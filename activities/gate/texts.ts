/** Most characters of a hook's reason, and of the subject that a person is shown. */
export const REASON_CHARS = 2_000;

const elsewhere = 'Do not try to reach the same by another way; go on without it, or say what you need.';

/** What the model is told of a call that was denied. */
export const DENIAL_TEXTS = {
  plan: (tool: string, file: string | null) =>
    `The call of ${tool} did not run: this session is planning, and nothing may be changed meanwhile. ` +
    `You may read${file === null ? '' : `, and write the plan to ${file}`}.`,
  hook: (tool: string, reason: string) => `The call of ${tool} did not run, a hook denied it: ${reason}`,
  rule: (tool: string, rule: number) =>
    `The call of ${tool} did not run: rule ${rule + 1} of the agent's permissions denies it. ${elsewhere}`,
  mode: (tool: string) =>
    `The call of ${tool} did not run: the agent's permissions do not allow it, and nobody is asked. ${elsewhere}`,
  policy: (tool: string) =>
    `The call of ${tool} did not run: somebody would have to approve it, and nobody is there to be asked. ${elsewhere}`,
  noSubject: (tool: string) =>
    `The call of ${tool} did not run: what it is about can't be told from its arguments. Correct them and call it again.`,
} as const;
