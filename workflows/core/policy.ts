/** Every number that is a policy, with its unit in its name. An agent may override `Limits` and `Patience`. */
export const POLICY = {
  backoff: { jitterShare: 0.2 },
  length: { continuations: 3 },
  empty: { resamples: 2, nudges: 1 },
  /** What is said again, so often and over so many characters, that it is no table, list or code any more. */
  doomLoop: { resamples: 2, repeats: 4, repeatedChars: 3_000, periodMaxChars: 4_000 },
  callless: { nudges: 1 },
  structuredOutput: { retries: 3, schemaChars: 100_000 },
  contract: { maxExponent: 20, maxRetries: 3, baseMs: 1_000, maxMs: 60_000 },
  todoGate: { nudges: 2 },
  tokenTarget: { untilShare: 0.9, continuations: 3, minimumGainTokens: 500 },
  /** Identical steps in a row: when the model is told, and when the turn ends. */
  stationarity: { readers: { nudgeAt: 4, endAt: 8 }, others: { nudgeAt: 8, endAt: 12 } },
  cutCalls: { stepsInARow: 5 },
  /** Of our own code: what fails so often is not going to work. */
  faults: { attempts: 10 },
  /** Shorter gaps between attempts, such as between any two tries, count as running time. */
  away: { fromMs: 15_000 },
  /** `whileSettling`: so many more, that only ask what became of the call. */
  lostAttempts: { ofOneSample: 10, ofOneCall: 10, whileSettling: 3 },
  sample: {
    /** More than any tokenizer puts into its longest tokens, on average over a whole output. */
    charsPerTokenMax: 64,
    compactionAtShare: 0.85,
    minimumRoomTokens: 3_000,
  },
  context: {
    /** Results of one round, a share of the window. */
    roundShare: 0.2,
    /** Trimming brings the context down to this share, so that it is not done again at each step. */
    trimmedToShare: 0.5,
    /** A line that stands for something longer. */
    lineChars: 160,
    /** How many of the newest rounds each stage leaves alone, and what is long enough to be worth it. */
    snip: { keptRounds: 8, minimumChars: 1_000 },
    microCompact: { keptRounds: 4, minimumChars: 200 },
    collapse: { keptRounds: 6 },
    /** The provider's count is believed within these factors of ours; bytes since then count by them too. */
    measured: { leastFactor: 0.4, sinceLeastFactor: 0.75, sinceMostFactor: 1.5 },
  },
  compaction: {
    retries: 3,
    ineffectiveInARow: 3,
    /** A compaction that frees less than this share of the window did not help. */
    minimumFreedShare: 0.05,
    summaryTokens: 4_096,
    /** Newest whole rounds that stay as they are, and the text that is summarized: shares of the window. */
    keptShare: 0.3,
    requestShare: 0.7,
    objectiveChars: 16_000,
  },
  /** `lockDepth`: folders of a path that locks tell apart; what lies deeper counts as one file. */
  tools: { quickMs: 3_000, parallel: 10, lockDepth: 20, resultChars: 30_000, killAfterMs: 5_000, heedMs: 10_000 },
  /** `keptMs`: how long a turn that ended BLOCKED leaves its question open. */
  waits: { skewMs: 1_000, askUserMs: 600_000, waitForMs: 86_400_000, keptMs: 30 * 86_400_000 },
  /**
   * `keptShare`: of a turn's budget, for its own last words; `usualShare`: of what is available, where nobody says how
   * much. `lookAgainMs`: a call that waits for one looks so often without having been told.
   */
  subAgents: { depth: 3, atOnce: 8, keptShare: 0.1, usualShare: 0.5, lookAgainMs: 600_000, promptChars: 100_000 },
  cleanup: { deadlineMs: 30_000 },
  hooks: { limitMs: 5_000, stopGateLimitMs: 600_000, outputBytes: 65_536 },
  /** A lease outlives every hook it is held for. */
  reports: { leaseMs: 30_000, atOnce: 5, rounds: 4 },
  stopGate: { asksPerTurn: 8 },
  approval: { expiryMs: 24 * 3_600_000 },
  continueAsNew: { atHistoryEvents: 500 },
  session: { idleMs: 5_000, queueMax: 1_000, editLockMs: 300_000 },
  effects: { sends: 3, sendAgainAfterMs: 1_000, askLimitMs: 10_000, askAgainAfterMs: 250, askAgainMaxMs: 2_000 },
  lease: { holdMs: 30_000, renewEveryMs: 10_000, abortMarginMs: 5_000 },
  /** The latest time that an end names for trying again. */
  resume: { afterMaxMs: 366 * 86_400_000 },
  store: { insistMs: 60_000, againAfterMs: 250 },
  recovery: {
    everyMs: 15_000,
    unknownAfterMs: 60_000,
    redeliverAfterMs: 5_000,
    /** A goal that should have gone on for so long: whether its workflow is gone is asked then. */
    goalOverdueMs: 60_000,
    turnsAtOnce: 500,
    continuationsPerJob: 3,
  },
  goal: {
    turns: 50,
    tokens: 2_000_000,
    runningMs: 24 * 3_600_000,
    /** Between two rounds; doubled while nothing changes. */
    gapMinMs: 2_000,
    gapMaxMs: 300_000,
    /** When to look again whether the session is idle, should nothing tell. */
    yieldLookMs: 30_000,
    idleTurnsInARow: 3,
    sameBlockers: 3,
    cutTurnsInARow: 3,
    judgeTries: 2,
    sceptics: { default: 1, most: 5 },
    /** What a judge is shown of the conversation, and how much it may say. */
    judge: { transcriptTokens: 24_000, outputTokens: 2_048 },
    /** `slackMs`: for what is around them, beside the time that each may take. */
    checks: {
      defaultLimitS: 300,
      mostLimitS: 3_600,
      most: 10,
      outputChars: 4_000,
      workspaceWaitMs: 3_600_000,
      slackMs: 3_600_000,
    },
    /** Wakes that one look takes in; the next one takes the others. */
    wakesAtOnce: 50,
    /** Of different events, while the goal is at work. */
    wakesRemembered: 20,
    objectiveChars: 32_000,
    /** How long it rests on what is away: the last one again and again. */
    wakeAfterMs: [300_000, 900_000, 3_600_000],
  },
  heartbeat: { timeoutMs: 5_000, everyMs: 250, throttleMs: 500 },
  delta: { flushMs: 50, flushBytes: 4_096 },
} as const;

/** The finite limits of one turn. `null` is only legal for an attended agent. */
export interface Limits {
  readonly maxSteps: number | null;
  readonly maxTokens: number | null;
  /** In micro-USD (millionths of a US dollar); `null` where the agent has no prices. */
  readonly maxMicroUsd: number | null;
  readonly maxRunningMs: number | null;
  /** Absolute end, ms since the epoch; off by default. */
  readonly notAfterMs: number | null;
  /** Cap on the output of one sample, in tokens. */
  readonly outputTokens: number;
  /** The cap that an output is given once, which the usual one has cut; no more than `outputTokens`: none. */
  readonly raisedOutputTokens: number;
  /** The model's context window, in tokens. */
  readonly contextTokens: number;
  /** How long a call waits for a worker that has the session's files, before the workspace counts as lost. */
  readonly workspaceWaitMs: number;
}

export const DEFAULT_LIMITS: Limits = {
  maxSteps: 100,
  maxTokens: 2_000_000,
  maxMicroUsd: null,
  maxRunningMs: 6 * 3_600_000,
  notAfterMs: null,
  outputTokens: 8_192,
  raisedOutputTokens: 65_536,
  contextTokens: 128_000,
  workspaceWaitMs: 3_600_000,
};

/** How long, and how often, a turn bears with its provider. */
export interface Patience {
  /** Rests between the attempts of one request, ms; the last one repeats. */
  readonly transportDelaysMs: readonly number[];
  /** Attempts of one request that stalls, breaks or is answered with a 5xx. */
  readonly transportAttempts: number;
  /** Rests before a step begins those attempts anew, ms: as often as there are rests. */
  readonly transientDelaysMs: readonly number[];
  readonly transientPerTurn: number;
  /** How long attempts are begun anew, from when they were first used up. */
  readonly outageMs: number;
  /** How often a 429 is waited out in a step. */
  readonly rateLimitAttempts: number;
  /** Wait for a 429 that does not say how long. */
  readonly rateLimitWaitMs: number;
  /** A longer wait that a 429 or an overload asks for, or a quota, parks the turn. */
  readonly rateLimitWaitMaxMs: number;
  /** Longest time that one sample may be parked. */
  readonly parkMaxMs: number;
  /** Rests before the key is read again after a 401, ms: as often as there are rests. */
  readonly authDelaysMs: readonly number[];
  /** Overloads in a row until the fallback model takes over. */
  readonly overloadsInARow: number;
  /** After an end on a provider that is away: when it is worth trying again. */
  readonly resumeAfterMs: number;
  /** Longest time without a data frame. */
  readonly stallMs: number;
  /** Longest time that a whole answer may take. */
  readonly totalMs: number;
  /** How long the usage may take after the finish reason. */
  readonly usageWaitMs: number;
  /** How long a message waits for its streamed text to be stored. */
  readonly flushWaitMs: number;
}

export const DEFAULT_PATIENCE: Patience = {
  transportDelaysMs: [2_000, 4_000, 8_000, 16_000, 30_000],
  transportAttempts: 15,
  transientDelaysMs: [2_000, 10_000, 30_000],
  transientPerTurn: 10,
  outageMs: 600_000,
  rateLimitAttempts: 2,
  rateLimitWaitMs: 20_000,
  rateLimitWaitMaxMs: 120_000,
  parkMaxMs: 24 * 3_600_000,
  authDelaysMs: [1_000, 2_000, 4_000],
  overloadsInARow: 3,
  resumeAfterMs: 300_000,
  stallMs: 300_000,
  totalMs: 3_600_000,
  usageWaitMs: 10_000,
  flushWaitMs: 5_000,
};

/** What an agent, or the rules of its turns, says; the rest as it is for everybody. */
export function patienceOf({ patience }: { readonly patience?: Partial<Patience> }): Patience {
  return { ...DEFAULT_PATIENCE, ...patience };
}

/** The lower of two limits; null: there is none. */
export function least(a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return Math.min(a, b);
}
