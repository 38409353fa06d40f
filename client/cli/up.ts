import { type Config, loadConfig } from '../../worker/config/load.ts';
import { type House, openHouse } from '../../worker/house.ts';
import { requireKeysOf } from '../../worker/config/providers.ts';
import type { JobEnd } from '../job.ts';
import { createRuns, type Runs } from '../runs.ts';
import { Cleanup } from './cleanup.ts';
import { EXIT, exitCodeOf } from './exit-code.ts';
import { jobLine, restLines } from './format.ts';
import { aborted, onInterrupt } from './interrupt.ts';
import { keepWorker } from './keep-worker.ts';
import { openApi } from './open-api.ts';
import type { Output } from './output.ts';
import { handIn, TENANT, watch } from './ticket.ts';
import { UsageError } from './usage-error.ts';

export interface UpOptions {
  /** A ticket to run at once. */
  readonly text?: string | undefined;
  /** Leave after the ticket. */
  readonly once: boolean;
  /** Run the sample ticket if none is given; scripted replies where no key is set. */
  readonly demo: boolean;
  readonly port?: number | undefined;
  readonly config?: string | undefined;
}

/** Brings everything up, runs a ticket if there is one, and stays until it is told to go. Returns the exit code. */
export async function up(options: UpOptions, output: Output): Promise<number> {
  if (options.once && options.text === undefined && !options.demo) {
    throw new UsageError('With --once, give a ticket text (or --demo for the sample ticket).');
  }
  const cleanup = new Cleanup();
  const interrupt = onInterrupt(() => output.note('\nStopping … (again to stop at once)'));
  try {
    const demo = await prepare(options, cleanup);
    requireKeysOf(demo.config);
    const house = await openHouse(demo.config, { embedded: true, onProgress: (line) => output.note(`  ${line}`) });
    cleanup.add(() => house.close());
    const { runs, apiUrl, joined } = await openDoors(house, options, cleanup, output);
    await listOldJobs(runs, output);
    output.line(addresses(house, apiUrl, joined));
    const ticket = options.text === undefined ? demo.sample(house) : { text: options.text };
    if (demo.notice !== null && !joined) output.line(demo.notice);
    const end =
      ticket && !interrupt.signal.aborted ? await run(runs, ticket, { house, apiUrl }, output, interrupt.signal) : null;
    if (options.once || joined) return end ? exitCodeOf(end) : ticket ? EXIT.interrupted : EXIT.ok;
    if (!interrupt.signal.aborted) output.line('Pawl stays up and takes jobs; Ctrl-C ends it.');
    const broken = await Promise.race([house.broken, aborted(interrupt.signal)]);
    if (broken === undefined) return EXIT.ok;
    output.note(`The embedded ${broken} server could not be kept running; its log is under ${house.config.home}.`);
    return EXIT.fault;
  } finally {
    await cleanup.run();
    interrupt.release();
  }
}

interface Prepared {
  readonly config: Config;
  readonly notice: string | null;
  sample(house: House): { readonly text: string; readonly workspace: string } | null;
}

/** The examples are no part of the library, so only the demo loads them. */
async function prepare(options: UpOptions, cleanup: Cleanup): Promise<Prepared> {
  const config = await loadConfig(options.config);
  if (!options.demo) return { config, notice: null, sample: () => null };
  const { demoModel, sampleTicket } = await import('../../examples/demo.ts');
  const model = await demoModel(config);
  cleanup.add(() => model.close());
  return { config: model.config, notice: model.notice, sample: (house) => sampleTicket(house.config) };
}

interface Doors {
  readonly runs: Runs;
  readonly apiUrl: string;
  /** Another process serves this data folder already, with its own worker and API. */
  readonly joined: boolean;
}

async function openDoors(house: House, options: UpOptions, cleanup: Cleanup, output: Output): Promise<Doors> {
  const runs = createRuns(house);
  const { api } = house.addresses;
  if (!house.owner && api !== null) return { runs, apiUrl: api, joined: true };
  const server = await openApi(runs, { port: options.port }, output);
  cleanup.add(() => server.close());
  const worker = await keepWorker(house, output);
  cleanup.add(() => worker.stop());
  house.publish({ apiUrl: server.url });
  return { runs, apiUrl: server.url, joined: false };
}

const OLD_JOBS = 10;

async function listOldJobs(runs: Runs, output: Output): Promise<void> {
  const { jobs, next } = await runs.list(TENANT, { limit: OLD_JOBS });
  if (jobs.length === 0) return;
  output.line(`Jobs from before${next === null ? '' : ` (the newest ${OLD_JOBS})`}:`);
  for (const job of jobs) output.line(`  ${jobLine(job, Date.now())}`);
}

function addresses({ addresses: at }: House, apiUrl: string, joined: boolean): string {
  return [
    joined ? 'Pawl runs here already; this is where.' : 'Pawl is up.',
    `  API         ${apiUrl}  (OpenAPI: ${apiUrl}/openapi.json)`,
    `  Temporal    ${at.temporal}${at.temporalUi === null ? '' : `  UI: ${at.temporalUi}`}`,
    `  PostgreSQL  ${at.database}`,
  ].join('\n');
}

async function run(
  runs: Runs,
  ticket: { readonly text: string; readonly workspace?: string },
  at: { readonly house: House; readonly apiUrl: string },
  output: Output,
  signal: AbortSignal,
): Promise<JobEnd | null> {
  const { job } = await handIn(runs, ticket);
  output.line(`\n▸ job ${job}`);
  if (ticket.workspace) output.line(`  works in ${ticket.workspace}`);
  const end = await watch(runs, job, output, signal);
  output.line(end ? endText(end, at) : `\nThe job goes on when Pawl is started again: npm run pawl -- show ${job}`);
  return end;
}

function endText(rest: JobEnd, { house, apiUrl }: { readonly house: House; readonly apiUrl: string }): string {
  const { job, turn } = rest;
  const ui = house.addresses.temporalUi;
  const inUi = `${ui}/namespaces/${house.config.temporalNamespace}/workflows/${encodeURIComponent(`turn/${turn}`)}`;
  return [
    '',
    ...restLines(rest),
    `  more        npm run pawl -- show ${job}`,
    `  as JSON     ${apiUrl}/v1/jobs/${job}`,
    ...(ui === null || turn === null ? [] : [`  in Temporal ${inUi}`]),
    '',
  ].join('\n');
}
