import { terminal } from './output.ts';
import { runCommand } from './run.ts';

const LEAVE_AFTER_MS = 1_000;

// A reader that goes (`pawl events … | head`) is no fault.
process.stdout.on('error', () => process.exit());

process.exitCode = await runCommand(process.argv.slice(2), terminal);
// Output to a pipe is still on its way; what else keeps the process alive is not waited for.
setTimeout(() => process.exit(), LEAVE_AFTER_MS).unref();
