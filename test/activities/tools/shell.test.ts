import { existsSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ToolContext, ToolResult } from '../../../activities/tools/define-tool.ts';
import { processesOf } from '../../../activities/tools/reap.ts';
import { shell } from '../../../activities/tools/shell.ts';
import { searchPath } from '../../../activities/tools/tool-environment.ts';
import { call, contextFor, freshWorkspace, until } from './tool-context.ts';

let workspace: string;
let context: ToolContext;
let abort: AbortController;

beforeEach(async () => {
  ({ workspace } = freshWorkspace());
  await mkdir(workspace);
  abort = new AbortController();
  context = contextFor(workspace, { signal: abort.signal });
});

// Whatever a case did: nothing of the call runs on.
afterEach(async () => {
  expect(await processesOf(context.idempotencyKey)).toEqual([]);
});

const sh = (command: string, more: object = {}): Promise<ToolResult> => call(shell, { command, ...more }, context);
const started = (name: string) => until(`${name} is there`, () => existsSync(join(workspace, name)));
const pidIn = (name: string) => Number(readFileSync(join(workspace, name), 'utf8'));
const runs = (pid: number) =>
  existsSync(`/proc/${pid}/stat`) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));

describe('how a command ends', () => {
  it.each([
    ['echo hello', { isError: false, note: 'exit 0', text: 'hello\n' }],
    ['true', { isError: false, note: 'exit 0', text: '(no output)' }],
    ['exit 3', { isError: true, note: 'exit 3', text: '[exit code 3]' }],
    ['printf out; echo err >&2; exit 1', { isError: true, note: 'exit 1', text: 'outerr\n[exit code 1]' }],
    ['kill -SEGV $$', { isError: true, note: 'signal SIGSEGV', text: '[ended by SIGSEGV]' }],
    ['kill -KILL $$', { isError: true, note: 'signal SIGKILL', text: '[ended by SIGKILL]' }],
    [
      'for i in 1 2 3; do echo o$i; echo e$i >&2; done',
      { isError: false, note: 'exit 0', text: 'o1\ne1\no2\ne2\no3\ne3\n' },
    ],
    [
      'echo "it\'s" "$HOME" | wc -l; echo \'a"b\\\' ünïcode',
      { isError: false, note: 'exit 0', text: '1\na"b\\ ünïcode\n' },
    ],
    // Standard input is closed: nothing waits for an answer that nobody gives.
    ['cat; read x; echo $?', { isError: false, note: 'exit 0', text: '1\n' }],
  ])('%s', async (command, result) => {
    expect(await sh(command)).toEqual(result);
  });

  it.each([
    ['echo a\0b', 'bad_command'],
    [`echo ${'x'.repeat(100_001)}`, 'bad_command'],
  ])('a command that no system can start is refused', async (command, note) => {
    expect(await sh(command)).toMatchObject({ isError: true, note });
  });

  it('a workspace that is gone is a result', async () => {
    context = { ...context, workspace: join(workspace, 'none') };
    expect(await sh('true')).toMatchObject({ isError: true, note: 'no_start' });
  });
});

describe('its surroundings', () => {
  it('are the workspace, and nothing of ours', async () => {
    process.env.PAWL_TEST_SECRET = 'test-pw';
    const { text } = await sh('pwd; env');
    delete process.env.PAWL_TEST_SECRET;
    const [folder, ...variables] = text.trim().split('\n');
    expect(folder).toBe(workspace);
    // PWD, OLDPWD, SHLVL and _ are the shell's own.
    const names = variables
      .map((line) => line.split('=')[0] ?? '')
      .filter((name) => !/^(OLD)?PWD$|^SHLVL$|^_$/.test(name));
    expect(new Set(names)).toEqual(
      new Set(['CI', 'GIT_TERMINAL_PROMPT', 'HOME', 'LANG', 'PAGER', 'PATH', 'PAWL_CALL', 'TERM']),
    );
    expect(text).not.toContain('test-pw');
  });

  it('have the programs of the machine, not those of this package', () => {
    expect(searchPath('/w/node_modules/.bin:/usr/bin::.:bin')).toBe('/usr/bin');
    expect(searchPath(undefined)).toContain('/usr/bin');
  });
});

describe('output', () => {
  it('invalid bytes in one stream only are shown and said', async () => {
    const { text } = await sh("echo fine; printf '\\xff\\n' >&2");
    expect(text).toMatch(/^fine\n\ufffd\n\n\[Some bytes were not UTF-8 text/);
  });

  it.each([
    ["printf 'a\\000b'", 3],
    ['head -c 3000000 /dev/urandom', 3_000_000],
  ])('%s is described, and kept', async (command, size) => {
    const { text, output, isError } = await sh(command);
    expect(isError).toBe(false);
    expect(text).toMatch(
      new RegExp(`^\\[Binary output, not shown. The whole output is ${size} bytes, sha256 [0-9a-f]{64}`),
    );
    expect(output?.length).toBe(size);
  });

  it('one line of 5 MB is given as head and tail', async () => {
    const { text, output } = await sh(
      "printf '🎫%.0s' {1..3}; head -c 5000000 /dev/zero | tr '\\0' x; printf '🎫'; exit 7",
    );
    expect(text.startsWith('🎫🎫🎫xxx')).toBe(true);
    expect(text.endsWith('xxx🎫\n[exit code 7]')).toBe(true);
    expect(output?.length).toBe(5_000_016);
  });

  it('endless output is stopped, in bounded memory', async () => {
    const before = process.memoryUsage().rss;
    let most = before;
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
    }, 10);
    const { note, output, isError } = await sh('yes "some line of text"');
    clearInterval(watch);
    expect({ note, isError, kept: output?.length }).toEqual({
      note: 'output limit',
      isError: true,
      kept: 8 * 1024 * 1024,
    });
    expect(most - before).toBeLessThan(96 * 1024 * 1024);
  });
});

describe('being stopped', () => {
  it('the time limit ends it, and what it printed is kept', async () => {
    expect(await sh('echo begun; sleep 1000', { timeout_seconds: 1 })).toEqual({
      isError: true,
      note: 'timeout',
      text: 'begun\n[Ended after its limit of 1 s. What it did until then stays done.]',
    });
  });

  it('a cancel asks it to stop first', async () => {
    const call = sh("trap 'echo cleaned up; exit 0' TERM; touch started; while :; do sleep 0.05; done");
    await started('started');
    abort.abort();
    expect(await call).toMatchObject({
      isError: true,
      note: 'aborted',
      aborted: 'in_the_middle',
      text: expect.stringContaining('cleaned up'),
    });
  });

  it('one that ignores the signal is killed with its children', async () => {
    const call = sh("trap '' TERM; sleep 1000 & echo $! > child; touch started; wait; while :; do sleep 0.05; done");
    await started('started');
    abort.abort();
    expect(await call).toMatchObject({ isError: true, note: 'aborted' });
    expect(runs(pidIn('child'))).toBe(false);
  }, 20_000);

  it('a cancel before the start starts nothing, and says so', async () => {
    abort.abort(new Error('CANCELLED'));
    expect(await sh('touch started')).toMatchObject({
      isError: true,
      note: 'aborted',
      aborted: 'without_effect',
      text: expect.stringContaining('before it changed anything'),
    });
    expect(existsSync(join(workspace, 'started'))).toBe(false);
  });

  // The command may do so before the supervisor has said that it runs, or after.
  it.each(['', 'sleep 0.5; '])(
    'a supervisor that the command stopped does not hold the call (%j)',
    async (wait) => {
      const call = sh(`echo $PPID > supervisor; ${wait}kill -STOP $PPID; touch started; sleep 1000`);
      await started('started');
      abort.abort();
      expect(await call).toMatchObject({ isError: true, note: expect.stringMatching(/^(aborted|no_start)$/) });
      process.kill(pidIn('supervisor'), 'SIGKILL');
    },
    20_000,
  );
});

describe('what it leaves behind', () => {
  it.each([
    ['a background child that holds the output', 'sleep 1000 & echo $! > child'],
    [
      'one that ignores every signal',
      "(trap '' TERM HUP INT; echo $BASHPID > child; while :; do sleep 0.1; done) & until [ -s child ]; do :; done",
    ],
    ['one that left the session', "setsid bash -c 'echo $$ > child; exec sleep 1000' & until [ -s child ]; do :; done"],
    [
      'one that left twice and closed everything',
      'setsid bash -c \'setsid bash -c "echo \\$\\$ > child; exec sleep 1000" <&- >&- 2>&- &\' & until [ -s child ]; do :; done',
    ],
    ['one with nohup', 'nohup sleep 1000 & echo $! > child'],
  ])('%s is ended, and does not hold the call', async (_, command) => {
    const result = await sh(`${command}; echo done`, { timeout_seconds: 20 });
    expect(result).toMatchObject({ isError: false, text: expect.stringContaining('done\n') });
    expect(runs(pidIn('child'))).toBe(false);
  });

  it('a process that starts others faster than it dies is ended', async () => {
    const loop = 'setsid bash -c "f() { sleep 0.05; f & exit; }; f &" & sleep 0.2';
    expect(await sh(loop)).toMatchObject({ isError: false });
  });

  // Without our variable only the pipe tells of it: the call must still come back.
  it('one that hides from us does not hold the call', async () => {
    const result = await sh(
      "env -i setsid bash -c 'echo $$ > child; exec sleep 1000' & until [ -s child ]; do :; done; echo done",
    );
    expect(result.text).toBe('done\n');
    process.kill(pidIn('child'), 'SIGKILL');
  });
});
