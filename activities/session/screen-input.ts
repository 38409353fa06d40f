import { Context } from '@temporalio/activity';
import type { Deps } from '../deps.ts';
import type { Asked } from '../gate/hooks.ts';
import { REASON_CHARS } from '../gate/texts.ts';
import type { ToScreen } from '../store/screening.ts';
import { fitText } from '../tools/text.ts';

/** Asks the hooks about what a person wrote. A denial has its reason masked, cut to size and never empty. */
export async function screenInput(
  deps: Pick<Deps, 'hooks' | 'masker'>,
  session: string,
  { input, source, text, sender, workspace, turn }: ToScreen,
): Promise<Pick<Asked, 'deny' | 'failures'>> {
  const { deny, failures } = await deps.hooks.ask(
    'UserPromptSubmit',
    { session, workspace, turn, input, source, text, sender },
    Context.current().cancellationSignal,
  );
  if (deny === null) return { deny, failures };
  return { deny: fitText(deps.masker.text(deny).trim(), REASON_CHARS) || 'no reason was given', failures };
}
