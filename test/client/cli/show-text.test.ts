import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { readSchema } from '../../../client/cli/read-schema.ts';
import { showText } from '../../../client/cli/show-text.ts';
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

function shown(end: JobTurnEnd): string[] {
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
  return showText(all as unknown as ShownJob, 0).split('\n');
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
