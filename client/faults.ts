/** The engine could not be reached or did not answer in time. What was stored stays: repeating is safe. */
export class EngineAway extends Error {
  override readonly name = 'EngineAway';

  constructor(cause?: unknown) {
    super('The engine cannot be reached; what was handed in is kept, and repeating the request is safe.', { cause });
  }
}

/** The store could not be reached or did not answer in time. Repeating is safe. */
export class StoreAway extends Error {
  override readonly name = 'StoreAway';

  constructor(cause?: unknown) {
    super('The store cannot be reached; repeating the request is safe.', { cause });
  }
}

/** A position or a cursor that does not belong to what it is used on. */
export class BadPosition extends Error {
  override readonly name = 'BadPosition';
}

/** An id of the caller's own that the store could not keep. */
export class BadId extends Error {
  override readonly name = 'BadId';
}

/** Runs a piece of work on the store; an outage comes out as StoreAway, everything else as it is. */
export async function onStore<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isStoreOutage(error) ? new StoreAway(error) : error;
  }
}

/** Codes of the operating system, and of PostgreSQL: connection, resources, shutdown, limit reached. */
const OUTAGE_CODE =
  /^(ECONN|EPIPE|ETIMEDOUT|ENOENT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|08|53|57P0|57014|25P03)/;

/** What `pg` says without a code. */
const OUTAGE_WORDS =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection)/;

function isStoreOutage(error: unknown): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as Error & { code?: unknown };
    if (typeof code === 'string' && OUTAGE_CODE.test(code)) return true;
    if (OUTAGE_WORDS.test(at.message)) return true;
  }
  return false;
}

/** The session takes nothing. */
export class SessionClosed extends Error {
  override readonly name = 'SessionClosed';
  readonly why: 'archived' | 'agent_ended';

  constructor(why: SessionClosed['why']) {
    super(CLOSED_WORDS[why]);
    this.why = why;
  }
}

/** What to do about a session that takes nothing. */
export const CLOSED_WORDS = {
  archived: 'The session is archived and takes nothing: unarchive it first, or fork it.',
  agent_ended:
    'The sub-agent has ended and hears nothing more: write to the session that started it, or fork this one.',
} as const;
