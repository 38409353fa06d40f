import type { End, EndDetail, EndReason } from '../../workflows/core/ends.ts';

/** What an end means, and what a person should do now. */
export interface Advice {
  readonly means: string;
  readonly now: string;
}

type Table = { readonly [R in EndReason]: Readonly<Record<Extract<End, { reason: R }>['detail'], Advice>> };

const SEE_LAST_CALLS =
  'See what its last calls did to the world (`pawl approvals` lists those that nobody can tell of); then hand in what is left.';

/** One entry for each way a turn can end: a row that is missing does not compile. */
const ADVICE: Table = {
  COMPLETED: {
    final_answer: { means: 'The model gave its final answer.', now: 'Nothing: read the answer.' },
    refused: {
      means: 'The model, or the filter of its provider, refused to answer.',
      now: 'Reword the ticket, or give it to an agent with another model.',
    },
    todo_open: {
      means: 'The model stopped with work left on its list, though it was reminded.',
      now: 'Read what is left, and hand it in as the next ticket.',
    },
  },
  BLOCKED: {
    awaiting_input: {
      means: 'The model asked a person, and nobody answered in time.',
      now: 'Answer the question; the answer starts the next turn.',
    },
    external_dependency: {
      means: 'The model waits for something outside that has not happened.',
      now: 'See to what it waits for, and tell it; the message starts the next turn.',
    },
    awaiting_approval: {
      means: 'A call needs a person’s leave, and nobody decided in time.',
      now: 'Approve or reject the call; the decision starts the next turn.',
    },
    no_progress: {
      means: 'The model made the same calls again and again.',
      now: 'Look at what it repeats, and tell it what to do differently.',
    },
  },
  MAX_TOKENS: {
    output_limit: {
      means: 'The reply was longer than one sample may be; the text so far is kept.',
      now: 'Raise outputTokens of the agent, or ask for less at once.',
    },
    context_limit: {
      means: 'The conversation no longer fits into the window of the model.',
      now: 'Hand in what is left as a new job, or take a model with a larger window.',
    },
  },
  ABORTED: {
    user_cancel: { means: 'Somebody cancelled it.', now: 'Nothing: hand it in again if it is still wanted.' },
    permission_rejected: {
      means: 'A person rejected a call.',
      now: 'Say in a new ticket what may be done instead.',
    },
    permission_cancelled: {
      means: 'A person cancelled when asked about a call.',
      now: 'Nothing: hand it in again if it is still wanted.',
    },
    max_steps: {
      means: 'It used all the tool rounds that a turn has.',
      now: 'See whether it made progress; then raise maxSteps, or hand in smaller tickets.',
    },
    budget: {
      means: 'It used all the tokens or the money that a turn has.',
      now: 'See whether it made progress; then raise the budget, or hand in smaller tickets.',
    },
    deadline: {
      means: 'Its time was over.',
      now: 'See what took so long; then raise maxRunningMs or notAfterMs, or hand in smaller tickets.',
    },
    hook_stop: { means: 'A hook stopped it.', now: 'Look at what the hook says; it is yours.' },
    scheduler_cancel: {
      means: 'The scheduler cancelled it.',
      now: 'Nothing: the schedule goes on with its next time.',
    },
    parent_cancelled: { means: 'The turn that started it was cancelled.', now: 'Look at the parent.' },
  },
  ERROR: {
    auth: {
      means: 'The provider did not accept the key.',
      now: 'Put a valid key where the provider’s apiKeyEnv says, restart the workers if it is in their environment, and hand it in again.',
    },
    model: {
      means: 'The model gave nothing usable: empty replies, or calls that were cut again and again.',
      now: 'Try again, with a larger outputTokens or another model.',
    },
    provider_unavailable: {
      means: 'The provider did not answer, through all retries.',
      now: 'See whether the provider is up and its quota is left; then hand it in again.',
    },
    invalid_request: {
      means: 'The provider refused the request as such.',
      now: 'Check the model’s name, the schemas of the tools and the size of the input; the same request will fail again.',
    },
    context_unusable: {
      means: 'The conversation cannot be sent to the model any more.',
      now: 'Rewind the session to an earlier message (`pawl messages <session>` lists them), or hand in what is left as a new job.',
    },
    storage: {
      means: 'The store refused a write.',
      now: 'Look at the database and the log of the worker; then hand it in again.',
    },
    tool_infrastructure: {
      means: 'A call could not be run at all: its worker was lost again and again, or failed before the tool.',
      now: 'Look at the log of the worker that has the workspace; then hand it in again.',
    },
    internal: {
      means: 'A fault of Pawl’s own.',
      now: 'Look into the log of the worker for the fault’s type, and report it.',
    },
  },
  INTERRUPTED: {
    terminated: {
      means: 'Somebody terminated its workflow; there was no time to clean up.',
      now: SEE_LAST_CALLS,
    },
    timed_out: {
      means: 'The engine closed its workflow for its time.',
      now: SEE_LAST_CALLS,
    },
    unknown_outcome: {
      means: 'A call may or may not have taken effect, and nobody can say.',
      now: 'Find out whether it did, and say so: `pawl approvals` lists the call, `pawl outcome` takes the answer. Nothing is repeated before.',
    },
    workspace_lost: {
      means: 'No worker has the files of its workspace.',
      now: 'Bring back a worker on the machine that has them, or hand it in with another workspace.',
    },
    lost: {
      means: 'The engine no longer has its workflow, and it left no end.',
      now: SEE_LAST_CALLS,
    },
  },
};

export function adviceOf(end: { readonly reason: EndReason; readonly detail: EndDetail }): Advice {
  const details: Readonly<Partial<Record<EndDetail, Advice>>> = ADVICE[end.reason];
  const advice = details[end.detail];
  if (!advice) throw new Error(`${end.reason} has no ${end.detail}`);
  return advice;
}
