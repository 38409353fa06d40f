import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readSchema } from '../../../client/cli/read-schema.ts';
import type { SessionInput } from '../../../client/inputs.ts';
import type { Session } from '../../../client/sessions.ts';
import { sessionText, showText } from '../../../client/cli/show-text.ts';
import type { JobTurnEnd } from '../../../client/job.ts';
import type { ShownJob } from '../../../client/show.ts';

const END: JobTurnEnd = {
  reason: 'COMPLETED',
  detail: 'todo_open',
  decidedBy: 'runtime',
  signal: { name: 'open_todos', count: 2, items: ['Write it\u001b[31m', 'Send it'] },
  phase: 'ending',
  step: 1,
  usage: {
    inputTokens: 1,
    cachedTokens: 0,
    outputTokens: 1,
    reasoningTokens: 0,
    complete: true,
    microUsd: null,
    heldMicroUsd: 0,
  },
  by: null,
  why: null,
  recordedBy: 'turn',
  structuredOutput: { value: { verdict: 'ok' } },
  contract: 'unmet',
  resumeAt: null,
  at: '2026-11-30T00:00:00.000Z',
};

function shown(end: JobTurnEnd, waiting: readonly SessionInput[] = []): string[] {
  const job = {
    id: 'job_1',
    session: 's',
    agent: 'a',
    ticket: null,
    state: 'done',
    createdAt: END.at,
    turn: 's/1',
    end,
  };
  const turns = [{ id: 's/1', n: 1, openedAt: END.at, end }];
  const usage = { requests: 0, models: [] };
  const all = { job, prompt: 'p', turns, calls: [], effects: [], agents: [], usage, text: null };
  return showText(all as unknown as ShownJob, 0, waiting).split('\n');
}

describe('an end, for people', () => {
  test('tells what was left open, what was not met, and the answer; without a terminal’s own codes', () => {
    const lines = shown(END).filter((line) => /^ {2}(open|contract|output)/.test(line));
    expect(lines).toEqual([
      expect.stringMatching(/^ {2}open {4}Write it/) as string,
      '  open    Send it',
      '  contract unmet',
      '  output  {"value":{"verdict":"ok"}}',
    ]);
    expect(lines.join('')).not.toContain('\u001b');
  });

  test('of a provider that was away says when to try again', () => {
    const away = { reason: 'ERROR', detail: 'provider_unavailable', resumeAt: '2026-11-30T00:05:00.000Z' } as const;
    expect(shown({ ...END, ...away, structuredOutput: null })).toContain('  try again after 2026-11-30T00:05:00.000Z');
  });
});

const WAITING: SessionInput = {
  id: 'in_1',
  session: 's',
  kind: 'prompt',
  class: 'people',
  status: 'queued',
  text: 'And then\nthe rest',
  by: 'ann',
  turn: null,
  end: null,
  message: null,
  isLeftOver: false,
  lock: null,
  dropped: null,
  createdAt: '1969-12-31T23:59:00.000Z',
};

describe('inputs that wait', () => {
  const lines = ['inputs that wait', '  in_1  prompt  queued', '    sent by ann 1 min 0 s ago: And then the rest'];

  test('stand with a job, as in their own list', () => {
    const all = shown(END, [WAITING]);
    expect(all.slice(all.indexOf('inputs that wait')).slice(0, 3)).toEqual(lines);
    expect(shown(END)).not.toContain('inputs that wait');
  });

  test('and with a session, whose name is enough', () => {
    const session: Session = {
      id: 's/agent/1',
      title: null,
      agent: 'tester',
      state: 'open',
      plan: false,
      head: 'h',
      forkedFrom: null,
      workspace: { kind: 'host', path: '/w' },
      turn: 's/agent/1/1',
      waiting: 1,
      createdAt: '1969-12-31T23:59:00.000Z',
    };
    expect(sessionText(session, [WAITING], 0).split('\n')).toEqual([
      expect.stringMatching(/^s\/agent\/1 {2}turn s\/agent\/1\/1 runs, 1 waiting .* tester$/),
      '  files   /w (host)',
      '',
      ...lines,
      '',
      '  read on with `pawl messages s/agent/1`, `pawl inputs s/agent/1`, `pawl why s/agent/1`',
    ]);
  });
});

describe('a schema from a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-schema-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  test('is read, or refused in one sentence', () => {
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    expect(readSchema(file('good.json', '{"type":"object"}'))).toEqual({ type: 'object' });
    expect(() => readSchema(file('half.json', '{"type":'))).toThrow(/holds no JSON object/);
    expect(() => readSchema(file('list.json', '[]'))).toThrow(/holds no JSON object/);
    expect(() => readSchema(join(folder, 'none.json'))).toThrow(/There is no file .*none\.json/);
  });
});
