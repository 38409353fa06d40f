import { startScriptedProvider } from '../testing/index.ts';
import type { Config } from '../worker/config/load.ts';
import { rules } from './scripted-model.ts';
import { makeSampleRepository, SAMPLE_TICKET } from './sample-ticket.ts';

export interface DemoModel {
  readonly config: Config;
  /** To be shown to whoever watches: where the replies come from. */
  readonly notice: string;
  close(): Promise<void>;
}

/** Without a key or a base URL for `openai`, the replies come from a script over real HTTP; otherwise nothing changes. */
export async function demoModel(config: Config): Promise<DemoModel> {
  const { openai } = config.providers;
  const usable = process.env.OPENAI_API_KEY || process.env.OPENAI_BASE_URL || config.file !== null;
  if (usable || !openai) {
    return {
      config,
      notice: `Model replies come from ${openai?.baseUrl ?? 'the providers in the config'}.`,
      close: async () => {},
    };
  }
  const provider = await startScriptedProvider({ rules });
  const scripted = { ...openai, baseUrl: provider.baseUrl, key: { kind: 'none' as const } };
  return {
    config: { ...config, providers: { ...config.providers, openai: scripted } },
    notice:
      'Model replies are SCRIPTED (no OPENAI_API_KEY and no OPENAI_BASE_URL is set); everything else is real: servers, tools, files, git.',
    close: () => provider.close(),
  };
}

/** A fresh sample repository and the ticket that asks for its repair. */
export function sampleTicket(config: Config): { readonly text: string; readonly workspace: string } {
  return { text: SAMPLE_TICKET, workspace: makeSampleRepository(config.workspaceRoot) };
}
