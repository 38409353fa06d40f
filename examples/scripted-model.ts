import {
  type ChatRequest,
  callTools,
  countToolResults,
  lastUserText,
  paced,
  type Reply,
  say,
} from '../testing/index.ts';
import { SAMPLE_TICKET } from './sample-ticket.ts';

const FIXED = `    .toLowerCase()
    .normalize('NFD')
    .replace(/\\p{Diacritic}/gu, '')`;

/** What a model would do with the sample ticket, step by step: each answer follows from the conversation alone. */
const STEPS: readonly Reply[] = [
  callTools([{ name: 'list_files', arguments: { path: '.' } }], { text: 'I will look at the repository first.' }),
  callTools(
    [
      { name: 'read_file', arguments: { path: 'src/slugify.js' } },
      { name: 'read_file', arguments: { path: 'test/slugify.test.js' } },
    ],
    { text: 'The function and its test are small; I will read both.' },
  ),
  callTools([{ name: 'shell', arguments: { command: 'node --test' } }], {
    text: 'I will see the test fail before I change anything.',
  }),
  callTools(
    [{ name: 'edit_file', arguments: { path: 'src/slugify.js', old_string: '    .toLowerCase()', new_string: FIXED } }],
    {
      text: 'Accented letters are cut out as if they were punctuation. Decomposing them first and dropping the accents keeps the base letter.',
    },
  ),
  callTools([{ name: 'shell', arguments: { command: 'node --test' } }], { text: 'Now the tests again.' }),
  callTools(
    [
      {
        name: 'shell',
        arguments: {
          command:
            'git commit --all --quiet --message "slugify keeps the base letter of accented characters" && git log --oneline',
        },
      },
    ],
    { text: 'Both pass. I will commit.' },
  ),
  say(
    'slugify now decomposes accented letters and drops the accents, so "Crème brûlée" becomes "creme-brulee". Both tests pass, and the fix is committed.',
  ),
];

/** Number of tool results after which each step is due. */
const DUE = [0, 1, 3, 4, 5, 6, 7];

/** The scripted stand-in for a model: it knows the sample ticket, and says so when it is asked for anything else. */
export function rules(request: ChatRequest): Reply {
  return paced(answer(request), { betweenChunksMs: 40 });
}

function answer(request: ChatRequest): Reply {
  if (!lastUserText(request).includes(SAMPLE_TICKET)) {
    return say(
      'I am a script, not a model: I only know the sample ticket. Set OPENAI_API_KEY (or OPENAI_BASE_URL for another provider) and submit this again.',
    );
  }
  const step = DUE.indexOf(countToolResults(request));
  return STEPS[step] ?? say('The conversation left the script; nothing more was done.');
}
