// A process that brings the servers of the home in argv[2], says so, and stays until its input ends.
import { startEmbedded } from '../../../worker/embedded/start.ts';

const started = Date.now();
const servers = await startEmbedded({
  home: process.argv[2] ?? '',
  onProgress: (line) => console.error(`${Date.now() - started} ms ${line}`),
});
const { temporalAddress, databaseUrl, owner } = servers;
console.log(JSON.stringify({ ms: Date.now() - started, temporalAddress, databaseUrl, owner, pids: servers.pids() }));
process.stdin.on('end', async () => {
  await servers.stop();
  process.exit(0);
});
process.stdin.resume();
