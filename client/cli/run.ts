import { CommanderError } from 'commander';
import { SetupError } from '../../worker/setup-error.ts';
import { BadId, BadPosition, EngineAway, SessionClosed, StoreAway } from '../faults.ts';
import { EXIT } from './exit-code.ts';
import type { Output } from './output.ts';
import { buildProgram } from './program.ts';
import { UsageError } from './usage-error.ts';

/** Runs one command line and returns its exit code. What goes wrong is one sentence, never a stack. */
export async function runCommand(argv: readonly string[], output: Output): Promise<number> {
  let code: number = EXIT.ok;
  try {
    await buildProgram(output, (result) => {
      code = result;
    }).parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    output.note(sentence(error));
    return error instanceof UsageError || error instanceof BadId ? EXIT.usage : EXIT.fault;
  }
}

function sentence(error: unknown): string {
  if (error instanceof SetupError || error instanceof EngineAway || error instanceof StoreAway) return error.message;
  if (error instanceof SessionClosed || error instanceof BadId) return error.message;
  if (error instanceof BadPosition || error instanceof UsageError) return error.message;
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return `Pawl failed, by a fault of its own: ${text.split('\n')[0]} (PAWL_DEBUG=1 shows where).${trace(error)}`;
}

function trace(error: unknown): string {
  return process.env.PAWL_DEBUG && error instanceof Error ? `\n${error.stack}` : '';
}
