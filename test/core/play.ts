import fc, { type Arbitrary, type GeneratorValue } from 'fast-check';
import { apply } from '../../workflows/core/apply.ts';
import { startable } from '../../workflows/core/batch.ts';
import type { CompactOutcome } from '../../workflows/core/compact-outcome.ts';
import type { Decision, GateVerdict, StopVerdict } from '../../workflows/core/gate.ts';
import type { End } from '../../workflows/core/ends.ts';
import { nextStep, type Step } from '../../workflows/core/next-step.ts';
import { DEFAULT_LIMITS } from '../../workflows/core/policy.ts';
import type { ProviderFailure, Reply, SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { CallRef, CallStatus, LockMode } from '../../workflows/core/tools.ts';
import { PLAIN_RULES, type TurnRules } from '../../workflows/core/turn-rules.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { callsOf, openTurn, type TurnState } from '../../workflows/core/turn-state.ts';
import { frozen, ref, T0, turn } from './fixtures.ts';

/** One thing that the turn heard, with the state on either side of it. */
export interface Heard {
  readonly before: TurnState;
  readonly event: TurnEvent;
  readonly after: TurnState;
}

/** A whole turn, as played: what it did, what it heard, how it ended. */
export interface Played {
  readonly heard: readonly Heard[];
  readonly steps: readonly { readonly state: TurnState; readonly step: Step }[];
  /** Inputs in the order they arrived, and those that samples put on the chain. */
  readonly arrived: readonly string[];
  readonly taken: readonly string[];
  readonly cancelled: boolean;
  /** Null: the turn did not come to its end. */
  readonly end: End | null;
  readonly state: TurnState;
}

/** Plain objects only, as JSON has them. */
const record = <T>(fields: { [K in keyof T]: Arbitrary<T[K]> }) => fc.record<T>(fields, { noNullPrototype: true });

type Heardless = TurnEvent extends infer E ? (E extends TurnEvent ? Omit<E, 'atMs'> : never) : never;

/** More loops than any turn with these limits may take. */
const LOOPS = 3_000;

const usages = record({
  inputTokens: fc.nat(500),
  cachedTokens: fc.constant(0),
  outputTokens: fc.nat(500),
  reasoningTokens: fc.constant(0),
  complete: fc.boolean(),
  microUsd: fc.nat(20_000),
  heldMicroUsd: fc.nat(9_000),
});
const statuses = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom<CallStatus[]>('ok', 'error', 'stopped', 'unknown', 'denied') },
  { weight: 1, arbitrary: fc.constant<CallStatus>('unknown_ends_turn') },
);
const modes = fc.constantFrom<LockMode[]>('read', 'write', 'read_tree', 'write_below');
const locks = fc.uniqueArray(record({ key: fc.constantFrom('f', 'g', 'h'), mode: modes }), {
  maxLength: 2,
  selector: (lock) => lock.key,
});
const calls = fc
  .array(
    record({
      effect: fc.constantFrom<CallRef['effect'][]>('none', 'idempotent', 'keyed', 'once'),
      undo: fc.constantFrom('declared', 'none'),
      locks,
      verdict: fc.oneof(
        { weight: 9, arbitrary: fc.constant('run') },
        { weight: 2, arbitrary: fc.constant('gate') },
        { weight: 1, arbitrary: fc.constant('answered') },
      ),
    }),
    { minLength: 1, maxLength: 14 },
  )
  .map((all) =>
    all.map(({ undo, ...each }, ordinal) =>
      ref(ordinal, { ...(each as Partial<CallRef>), ...(undo === 'declared' && { undo }) }),
    ),
  );
const waits = fc.option(fc.constantFrom(0, 500, 90_000, 200_000, 40_000_000));
const failures: Arbitrary<ProviderFailure> = fc.oneof(
  fc.constant<ProviderFailure>({ kind: 'transport', cause: 'cut' }),
  fc.constant<ProviderFailure>({ kind: 'stalled' }),
  waits.map((afterMs): ProviderFailure => ({ kind: 'overloaded', status: 529, afterMs })),
  fc.constant<ProviderFailure>({ kind: 'server_error', status: 500, final: false }),
  fc.tuple(waits, fc.boolean()).map(([afterMs, quota]): ProviderFailure => ({ kind: 'rate_limited', afterMs, quota })),
  fc.constant<ProviderFailure>({ kind: 'auth', status: 401 }),
  fc.constant<ProviderFailure>({ kind: 'doom_loop' }),
);
const finals = fc.constantFrom<ProviderFailure[]>(
  { kind: 'overflow' },
  { kind: 'too_large' },
  { kind: 'invalid_request', status: 400 },
  { kind: 'server_error', status: 500, final: true },
);

type Bare = SampleOutcome extends infer O ? (O extends SampleOutcome ? Omit<O, 'head'> : never) : never;
const replies = (
  of: Arbitrary<readonly CallRef[]>,
  empty: boolean,
  finish: Arbitrary<'stop' | 'length' | 'content_filter' | 'tool_calls'>,
) => record({ kind: fc.constant('reply' as const), finish, empty: fc.constant(empty), calls: of, usage: usages });
/** Final answers that hooks want to hear of. */
const gated = replies(fc.constant([]), false, fc.constant('stop')).map((reply) => ({
  ...reply,
  stopGate: true as const,
}));
const texts = fc
  .tuple(
    replies(fc.constant([]), false, fc.constantFrom('stop', 'stop', 'length', 'tool_calls', 'content_filter')),
    fc.nat(3),
  )
  .map(([reply, openTodos]) => ({ ...reply, openTodos }));
const rules: Arbitrary<TurnRules> = record({
  role: fc.constantFrom('agent', 'sub_agent'),
  fallback: fc.constantFrom('named', 'none'),
  schema: fc.constantFrom('asked', 'none'),
  todoGate: fc.constantFrom('on', 'off'),
  tokenTarget: fc.option(fc.nat(6_000)),
  contract: fc.option(
    record({
      tools: fc.constantFrom(['read_file'], ['never'], ['StructuredOutput']),
      maxRetries: fc.nat(3),
      baseMs: fc.nat(9_000),
      maxMs: fc.constant(20_000),
    }),
  ),
});
const AMPLE = { maxTokens: 40_000, maxMicroUsd: 400_000, maxRunningMs: 3_600_000 };
/** Mostly ample; else one of them is tight. */
const budgets = fc.oneof(
  { weight: 6, arbitrary: fc.constant(AMPLE) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 4_000 }).map((maxTokens) => ({ ...AMPLE, maxTokens })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 90_000 }).map((maxMicroUsd) => ({ ...AMPLE, maxMicroUsd })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 60_000 }).map((maxRunningMs) => ({ ...AMPLE, maxRunningMs })) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 90_000 }).map((ms) => ({ ...AMPLE, notAfterMs: T0 + ms })) },
);
const verdicts = fc.constantFrom<NonNullable<Reply['structured']>[]>(
  { verdict: 'valid', results: 1 },
  { verdict: 'valid', results: 0 },
  { verdict: 'invalid', results: 2 },
  { verdict: 'invalid', results: 0 },
  { verdict: 'cut', results: 0 },
);
const failed = (of: Arbitrary<ProviderFailure>) =>
  fc.tuple(of, usages).map(([failure, usage]) => ({ ...failure, usage }));

/** `rough`: how many of a hundred requests fail. */
const outcomes = (rough: number): Arbitrary<Bare> =>
  fc.oneof(
    { weight: rough, arbitrary: failed(failures) },
    { weight: 3, arbitrary: failed(finals) },
    { weight: 100 - rough, arbitrary: replies(calls, false, fc.constantFrom('stop', 'stop', 'length')) },
    { weight: 8, arbitrary: replies(fc.constant([]), true, fc.constant('stop')) },
    { weight: 12, arbitrary: texts },
    { weight: 6, arbitrary: gated },
    { weight: 4, arbitrary: fc.constant<Bare>({ kind: 'needs_compaction', estimateTokens: 9 }) },
    { weight: 1, arbitrary: fc.constant<Bare>({ kind: 'no_room', estimateTokens: 9 }) },
    { weight: 1, arbitrary: fc.constant<Bare>({ kind: 'attempts_lost', attempts: 10 }) },
  );

const compactions: Arbitrary<CompactOutcome> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(30_000, 60_000, 120_000), usages)
      .map(([afterTokens, usage]): CompactOutcome => {
        return { kind: 'compacted', head: '', beforeTokens: 110_000, afterTokens, usage };
      }),
  },
  { weight: 3, arbitrary: failed(failures) },
  { weight: 1, arbitrary: failed(finals) },
  { weight: 1, arbitrary: usages.map((usage): CompactOutcome => ({ kind: 'empty', usage })) },
  { weight: 1, arbitrary: fc.constantFrom<CompactOutcome[]>({ kind: 'off' }, { kind: 'nothing' }) },
);

/** What a turn is mostly about: a model that calls the same again and again, one that only talks, a provider that is away. */
type Mood = 'mixed' | 'loop' | 'talk' | 'away';

const away = fc.constantFrom<ProviderFailure[]>(
  { kind: 'stalled' },
  { kind: 'overloaded', status: 529, afterMs: null },
  { kind: 'overloaded', status: 503, afterMs: null },
);

function moody(mood: Mood, rough: number): Arbitrary<Bare> {
  switch (mood) {
    case 'mixed':
      return outcomes(rough);
    case 'loop':
      return replies(fc.constant([ref(0)]), false, fc.constant('stop'));
    case 'talk':
      return fc.oneof(
        { weight: 6, arbitrary: texts },
        { weight: 3, arbitrary: replies(fc.constant([]), true, fc.constant('stop')) },
        { weight: 3, arbitrary: replies(fc.constant([]), false, fc.constant('length')) },
        { weight: 1, arbitrary: gated },
        { weight: 1, arbitrary: replies(fc.constant([ref(0)]), false, fc.constant('stop')) },
      );
    case 'away':
      return fc.oneof(
        { weight: 60, arbitrary: failed(away) },
        { weight: 1, arbitrary: replies(fc.constant([ref(0)]), false, fc.constant('stop')) },
      );
  }
}

/** Plays one turn against a world of chance, in the order in which `workflows/turn.ts` asks and records. */
export function play(pick: GeneratorValue): Played {
  const world = new World(pick);
  for (let loop = 0; loop < LOOPS; loop += 1) {
    const step = world.look();
    if (step.kind === 'finish') return world.over(step.end);
    world.take(step);
  }
  return world.over(null);
}

const carriedPhase = openTurn({
  head: 'h0',
  inputs: ['in_1'],
  rules: PLAIN_RULES,
  limits: DEFAULT_LIMITS,
  atMs: T0,
  carried: { assistant: 'before', ref: ref(0, { effect: 'once' }) },
}).phase;

class World {
  readonly #pick: GeneratorValue;
  readonly #rough: number;
  readonly #cancels: boolean;
  readonly #mood: Mood;
  readonly #heard: Heard[] = [];
  readonly #steps: { state: TurnState; step: Step }[] = [];
  readonly #arrived: string[] = ['in_1'];
  readonly #taken: string[] = [];
  #state: TurnState;
  #now = T0;
  #heads = 0;
  #cancel = false;

  constructor(pick: GeneratorValue) {
    this.#pick = pick;
    this.#rough = pick(fc.constantFrom, 5, 40, 95);
    this.#cancels = pick(fc.nat, 3) === 0;
    this.#mood = pick(fc.constantFrom<Mood[]>, 'mixed', 'mixed', 'mixed', 'loop', 'talk', 'away');
    const opened = turn({
      rules: pick(() => rules),
      limits: { maxSteps: pick(fc.nat, 14), ...pick(() => budgets) },
    });
    this.#state = pick(fc.nat, 3) === 0 ? frozen({ ...opened, phase: carriedPhase }) : opened;
  }

  look(): Step {
    this.#hearCancel();
    const step = nextStep(this.#state, this.#now);
    this.#steps.push({ state: this.#state, step });
    return step;
  }

  take(step: Exclude<Step, { kind: 'finish' }>): void {
    switch (step.kind) {
      case 'sample':
        return this.#sample(step);
      case 'runTools':
        return this.#runBatch();
      case 'stopGate':
        return this.#askStopGate();
      case 'rest':
        this.#meanwhile();
        this.#now += this.#cancel ? 0 : step.forMs;
        return this.#recordStep({ kind: 'rested' });
      case 'gate':
        this.#meanwhile();
        return this.#recordStep({ kind: 'gated', ordinal: step.ordinal, verdict: this.#verdict(step.ordinal) });
      case 'awaitDecision':
        return this.#decide(step);
      case 'undo':
        return this.#record({ kind: 'undo_over' });
      case 'compact':
        return this.#compact();
    }
  }

  over(end: End | null): Played {
    const { length } = this.#arrived;
    this.#record({ kind: 'inputs_arrived', inputs: [`in_${length + 1}`] });
    this.#arrived.push(`in_${length + 1}`);
    return {
      heard: this.#heard,
      steps: this.#steps,
      arrived: this.#arrived,
      taken: this.#taken,
      cancelled: this.#cancel,
      end,
      state: this.#state,
    };
  }

  #sample(step: Step & { kind: 'sample' }): void {
    this.#meanwhile();
    this.#heads += 1;
    const head = `h${this.#heads}`;
    // A cancel cuts the stream, if it comes in time.
    const cut = this.#cancel && this.#pick(fc.boolean);
    const appended = !cut || this.#pick(fc.boolean);
    const drawn: Bare = cut
      ? { kind: 'cut', usage: this.#pick(() => usages) }
      : this.#pick(moody, this.#mood, this.#rough);
    // Where nobody watches, nobody sees it.
    const unseen = drawn.kind === 'doom_loop' && !step.watchRepetition;
    const bare: Bare = unseen ? { kind: 'stalled', usage: drawn.usage } : this.#judged(step, drawn);
    if (appended) this.#taken.push(...step.inputs);
    this.#recordStep({
      kind: 'sampled',
      outcome: { ...bare, head: appended ? head : this.#state.head } as SampleOutcome,
      drained: step.inputs.length,
      dice: this.#pick(fc.double, { min: 0, max: 0.999, noNaN: true }),
    });
  }

  #compact(): void {
    this.#meanwhile();
    const bare = this.#cancel && this.#pick(fc.boolean) ? ({ kind: 'cut' } as const) : this.#pick(() => compactions);
    const head = `h${(this.#heads += 1)}`;
    const outcome = bare.kind === 'compacted' ? { ...bare, head } : bare;
    this.#recordStep({ kind: 'compacted', outcome, dice: 0.5 });
  }

  /** Where a schema is asked for, each text is judged by it. */
  #judged(step: Step & { kind: 'sample' }, outcome: Bare): Bare {
    if (outcome.kind !== 'reply') return outcome;
    if (outcome.calls.length > 0) return outcome;
    if (step.schema === 'none') return outcome;
    const structured = this.#pick(() => verdicts);
    const finish = structured.verdict === 'cut' ? 'length' : outcome.finish;
    return { ...outcome, finish, empty: outcome.empty && structured.results === 0, structured };
  }

  #runBatch(): void {
    const running: number[] = [];
    for (;;) {
      for (const { ordinal } of this.#cancel ? [] : startable(this.#calls())) {
        this.#record({ kind: 'call_started', ordinal });
        running.push(ordinal);
      }
      if (running.length === 0) break;
      this.#meanwhile();
      const at = this.#pick(fc.nat, running.length - 1);
      const isCutInDoubt =
        this.#mood === 'mixed' && this.#pick(fc.nat, 12) === 0 && this.#doubt(running[at] ?? 0) === 'cut';
      const [ordinal = 0] = running.splice(at, 1);
      const plain = this.#mood === 'mixed' ? this.#pick(() => statuses) : 'ok';
      const status = isCutInDoubt ? 'unknown' : plain;
      this.#record({ kind: 'call_finished', ordinal, status });
      // A straggler: the same call once more, with another word.
      if (this.#pick(fc.nat, 9) === 0) this.#record({ kind: 'call_finished', ordinal, status: 'not_started' });
    }
    this.#recordStep(
      this.#pick(fc.nat, 60) === 0 ? { kind: 'failed', type: 'x.y', source: 'tool' } : { kind: 'batch_returned' },
    );
  }

  #askStopGate(): void {
    this.#meanwhile();
    const kinds = ['pass', 'block', 'block', 'block', 'stop'] as const;
    const kind = this.#cancel ? 'pass' : this.#pick(() => fc.constantFrom(...kinds));
    if (kind === 'block') this.#heads += 1;
    const verdict = ((): StopVerdict => {
      switch (kind) {
        case 'pass':
          return { kind };
        case 'block':
          return { kind, head: `h${this.#heads}` };
        case 'stop':
          return { kind, hook: 'StopGate 1' };
      }
    })();
    this.#recordStep({ kind: 'stop_gate_answered', verdict });
  }

  /** Nobody knows what became of a call: a person answers, or the hour is over, and it goes on. */
  #doubt(ordinal: number): 'cut' | 'heard' {
    const approval = `out_${ordinal}`;
    this.#record({ kind: 'outcome_asked', ordinal, approval, untilMs: this.#now + 60_000 });
    this.#meanwhile();
    if (this.#cancel) return 'cut';
    if (this.#pick(fc.boolean)) this.#record({ kind: 'answer_arrived', approval });
    else this.#now += 60_000;
    this.#record({ kind: 'outcome_heard', ordinal });
    return 'heard';
  }

  #verdict(ordinal: number): GateVerdict {
    const call = this.#calls().find((each) => each.ref.ordinal === ordinal);
    const kind = this.#pick(fc.constantFrom, 'run', 'denied', 'ask');
    if (kind === 'ask') return { kind, approval: `apr_${ordinal}`, untilMs: this.#now + 60_000 };
    return kind === 'run' ? { kind, ref: { ...(call?.ref ?? ref(ordinal)), argsHash: 'final' } } : { kind: 'denied' };
  }

  /** A person answers in time or not at all; a word about another approval changes nothing. */
  #decide({ ordinal, approval, forMs }: Step & { kind: 'awaitDecision' }): void {
    this.#meanwhile();
    if (this.#cancel) return this.#recordStep({ kind: 'batch_returned' });
    if (this.#pick(fc.boolean)) this.#record({ kind: 'answer_arrived', approval });
    else this.#now += forMs;
    this.#record({ kind: 'answer_arrived', approval: 'apr_of_nobody' });
    const call = this.#calls().find((each) => each.ref.ordinal === ordinal);
    const kind = this.#pick(
      fc.constantFrom,
      'approved',
      'approved',
      'denied',
      'rejected',
      'cancelled',
      'message',
      'expired',
      'pending',
    );
    const decision = ((): Decision => {
      switch (kind) {
        case 'approved':
          return { kind, ref: call?.ref ?? ref(ordinal) };
        case 'pending':
          return { kind, untilMs: this.#now + 1_000 };
        case 'message': {
          const id = `in_${this.#arrived.length + 1}`;
          this.#arrived.push(id);
          return { kind, input: id };
        }
        default:
          return { kind };
      }
    })();
    this.#recordStep({ kind: 'decided', ordinal, decision });
  }

  #calls() {
    return callsOf(this.#state.phase);
  }

  /** What may happen while a step is under way. */
  #meanwhile(): void {
    const { length } = this.#arrived;
    if (length < 8 && this.#pick(fc.nat, 5) === 0) {
      const id = `in_${length + 1}`;
      this.#arrived.push(id);
      // A signal delivered twice, and one that repeats what still waits.
      this.#record({ kind: 'inputs_arrived', inputs: [id, id] });
      this.#record({ kind: 'inputs_arrived', inputs: [id] });
    }
    if (this.#cancels && this.#pick(fc.nat, 11) === 0) {
      this.#cancel = true;
      this.#hearCancel();
    }
  }

  #hearCancel(): void {
    if (this.#cancel) this.#record({ kind: 'cancel_requested' });
  }

  #recordStep(heard: Heardless): void {
    this.#hearCancel();
    this.#record(heard);
  }

  #record(heard: Heardless): void {
    this.#now += this.#pick(fc.nat, 2_000);
    const fromMs = this.#now - this.#pick(fc.nat, 3_000);
    const away = [{ fromMs, toMs: this.#now }];
    const event = frozen({ ...heard, atMs: this.#now, ...(this.#pick(fc.nat, 9) === 0 && { away }) } as TurnEvent);
    const before = this.#state;
    this.#state = frozen(apply(before, event));
    this.#heard.push({ before, event, after: this.#state });
  }
}
