import { randomBytes } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { usableSchema } from '../../activities/answer/output-schema.ts';
import { contentHash, rootHash } from '../../activities/store/hash.ts';
import { recordEvents } from '../../activities/store/events.ts';
import { type AcceptedJob, storeJob } from '../../activities/store/intake.ts';
import { StreamListener, StreamNotifier } from '../../activities/store/notify.ts';
import { input, type StoredAgent, tenant, toolList, turn } from '../../activities/store/schema.ts';
import { type Catalogue, createRuns } from '../../client/index.ts';
import { DEFAULT_LIMITS } from '../../workflows/core/policy.ts';
import type { InputStatus } from '../../workflows/core/inputs.ts';
import { turnIdOf } from '../../workflows/messages.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';

const AGENT: StoredAgent = {
  name: 'tester',
  provider: 'none',
  model: 'none',
  instructions: '',
  tools: [],
  attended: false,
  limits: DEFAULT_LIMITS,
};

export const CATALOGUE: Catalogue = {
  names: [AGENT.name],
  agent: (name) => (name === undefined || name === AGENT.name ? AGENT : null),
  outputSchema: usableSchema,
  toolCheck: () => ({ ok: true }),
  workspace: (path) =>
    path?.startsWith('..')
      ? { ok: false, why: 'The workspace is outside the workspace root; name a folder inside it.' }
      : { ok: true, workspace: { kind: 'shared', path: '/tmp', queue: 'none' } },
};

/** The facade on a database of its own, with an engine that is away: what the store alone can answer. */
export async function storeOnly() {
  const database = await testDatabase();
  const connection = Connection.lazy({ address: '127.0.0.1:1', connectTimeout: 200 });
  const listener = new StreamListener(() => new pg.Client({ connectionString: database.url }));
  const temporal = new Client({ connection });
  const runs = createRuns({
    database,
    temporal,
    taskQueue: 'none',
    catalogue: CATALOGUE,
    listener,
    engineLimitMs: 300,
  });
  const notifier = new StreamNotifier(database.pool);
  return {
    database,
    runs,
    listener,
    notifier,
    async close() {
      notifier.close();
      await listener.close();
      await connection.close();
      await database.close();
    },
  };
}

export async function addTenant({ db }: TestDatabase, id: string): Promise<void> {
  await db.insert(tenant).values({ id, name: id });
}

/** A job that nobody works on. */
export async function seedJob(
  { db }: TestDatabase,
  owner = 'default',
  key = randomBytes(8).toString('hex'),
): Promise<AcceptedJob> {
  const found = CATALOGUE.workspace(undefined, key);
  if (!found.ok) throw new Error(found.why);
  const request = { tenant: owner, key, fingerprint: key, agent: AGENT, workspace: found.workspace };
  const stored = await storeJob(db, { ...request, text: 'text', ticket: null, sender: null });
  if (stored.kind !== 'accepted') throw new Error(stored.kind);
  return stored;
}

/** The row of a turn that works on a job, open or ended. */
export async function seedTurn(
  { db }: TestDatabase,
  job: AcceptedJob,
  {
    n = 1,
    owner = 'default',
    input: opener = job.input,
    end,
  }: { n?: number; owner?: string; input?: string; end?: Partial<typeof turn.$inferInsert> } = {},
): Promise<string> {
  const tools = contentHash([]);
  await db.insert(toolList).values({ hash: tools, tools: [] }).onConflictDoNothing();
  const head = rootHash(owner, job.session);
  const id = turnIdOf(job.session, n);
  const { session, input: origin } = job;
  const row = { id, session, n, baseHead: head, head, input: opener, origin, agent: contentHash(AGENT), tools };
  await db.insert(turn).values({ ...row, ...end });
  return id;
}

/** What a job goes on with by itself behind an ended turn. */
export async function seedContinuation(
  { db }: TestDatabase,
  {
    n = 1,
    continues,
    ...on
  }: { readonly session: string; readonly continues: string; readonly status: InputStatus; readonly n?: number },
): Promise<string> {
  const id = `con_${randomBytes(6).toString('hex')}`;
  await db.insert(input).values({ id, kind: 'directive', class: 'wake_up', body: 'go on', continues, ...on });
  const event = { kind: 'job.continues', layer: 'driver', input: id, n, of: 3 } as const;
  await db.transaction((tx) => recordEvents(tx, on.session, [{ key: id, turn: continues, event }]));
  return id;
}
