import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { until } from '../../support/until.ts';
import { fixture, hubOf, isAlive, offered, reads, toolOf, use } from './fixture.ts';

describe('a server on stdio', () => {
  it('that is killed in the middle of a call fails it within 2 s, and is back for the next', async () => {
    const { server, lines } = fixture([offered('hang'), offered('act')], { timeLimitMs: 1_800_000 });
    const hub = hubOf({ f: server });
    const pending = use(await toolOf(hub, 'mcp__f__hang'));
    pending.catch(() => {});
    await until('the call has arrived', () => lines('effects').length === 1);
    const at = Date.now();
    process.kill(hub.status().f!.pid!, 'SIGKILL');
    // Whether it acted is not known: the ledger must hear an exception, not a failure.
    await expect(pending).rejects.toMatchObject({ name: 'McpCallLost', code: 'closed' });
    expect(Date.now() - at).toBeLessThan(2_000);
    expect(await use(await toolOf(hub, 'mcp__f__act'))).toEqual({ isError: false, text: 'done' });
    expect(lines('starts')).toHaveLength(2);
  });

  it('that acts and dies is never sent the call again', async () => {
    const { server, lines } = fixture([offered('act_and_die')]);
    const tool = await toolOf(hubOf({ f: server }), 'mcp__f__act_and_die');
    await expect(use(tool)).rejects.toThrow('lost in the middle');
    expect(lines('effects')).toEqual(['act']);
  });

  it('that dies while it reads is asked once more', async () => {
    const { server, lines } = fixture([offered('read_and_die_once', reads)]);
    const tool = await toolOf(hubOf({ f: server }), 'mcp__f__read_and_die_once');
    expect(tool.effect).toBe('none');
    expect(await use(tool)).toEqual({ isError: false, text: 'read' });
    expect(lines('effects')).toEqual(['read', 'read']);
    expect(lines('starts')).toHaveLength(2);
  });

  it('that dies at each read is asked twice and no more', async () => {
    const { server, lines } = fixture([offered('act_and_die', reads)]);
    const result = await use(await toolOf(hubOf({ f: server }), 'mcp__f__act_and_die'));
    expect(result).toMatchObject({ isError: true, note: 'mcp_closed' });
    expect(lines('effects')).toHaveLength(2);
  });

  // The exit is seen before the last bytes of the pipe.
  it('that answers and leaves has answered', async () => {
    const { server } = fixture([offered('answer_and_leave')]);
    expect(await use(await toolOf(hubOf({ f: server }), 'mcp__f__answer_and_leave'))).toMatchObject({
      text: 'last words',
    });
  });

  it('that is dead is started once for two calls at the same time', async () => {
    const { server, lines } = fixture([offered('act'), offered('echo')]);
    const hub = hubOf({ f: server });
    const [act, echo] = [await toolOf(hub, 'mcp__f__act'), await toolOf(hub, 'mcp__f__echo')];
    process.kill(hub.status().f!.pid!, 'SIGKILL');
    await until('its death is known', () => hub.status().f!.state === 'down');
    const results = await Promise.all([use(act), use(echo, { a: 1 })]);
    expect(results.map(({ text }) => text)).toEqual(['done', '{"a":1}']);
    expect(lines('starts')).toHaveLength(2);
  });

  it('that ends on every start is given up, until a turn lists the tools again', async () => {
    const { server, lines, breakIt, repair } = fixture([offered('act')]);
    const hub = hubOf({ f: server });
    const act = await toolOf(hub, 'mcp__f__act');
    breakIt();
    process.kill(hub.status().f!.pid!, 'SIGKILL');
    await until('its death is known', () => hub.status().f!.state === 'down');
    const down = { isError: true, note: 'mcp_down', text: expect.stringContaining('"f" is down, so act did not run') };
    expect(await use(act)).toMatchObject(down);
    expect(hub.status().f).toMatchObject({
      state: 'given_up',
      starts: 5,
      why: expect.stringContaining('no such database\ufffd'),
    });
    expect(await use(act)).toMatchObject(down);
    expect(lines('starts')).toHaveLength(5);
    expect(lines('effects')).toEqual([]);
    repair();
    expect((await hub.list()).map(({ name }) => name)).toEqual(['mcp__f__act']);
    // A tool of an earlier list works with the new process.
    expect(await use(act)).toMatchObject({ text: 'done' });
  });

  it('that was down at the start has its tools at a later turn', async () => {
    const good = fixture([offered('echo')]);
    const bad = fixture([offered('act')]);
    bad.breakIt();
    const hub = hubOf({ good: good.server, bad: bad.server, none: { command: '/does/not/exist' } });
    expect((await hub.list()).map(({ name }) => name)).toEqual(['mcp__good__echo']);
    expect(hub.status()).toMatchObject({
      good: { state: 'up', tools: 1, why: null },
      bad: { state: 'given_up', tools: 0, why: expect.stringContaining('no such database\ufffd') },
      none: { state: 'given_up', why: expect.stringContaining('could not be started') },
    });
    bad.repair();
    expect((await hub.list()).map(({ name }) => name)).toEqual(['mcp__bad__act', 'mcp__good__echo']);
  });

  it('that changes its list is asked at the next list, not before', async () => {
    const { server, offer } = fixture([offered('announce')]);
    const changed = vi.fn();
    const hub = hubOf({ f: server }, { onChange: changed });
    const announce = await toolOf(hub, 'mcp__f__announce');
    offer([offered('announce'), offered('act', reads)]);
    expect(await hub.list()).toHaveLength(1);
    changed.mockClear();
    expect(await use(announce)).toMatchObject({ text: 'announced' });
    await until('it is told', () => changed.mock.calls.length > 0);
    expect((await hub.list()).map(({ name, effect }) => [name, effect])).toEqual([
      ['mcp__f__act', 'none'],
      ['mcp__f__announce', 'once'],
    ]);
  });

  it('is told of a cancelled call; a call that only reads is known to have done nothing', async () => {
    const { server, lines } = fixture([offered('hang')]);
    const stop = new AbortController();
    const pending = use(await toolOf(hubOf({ f: server }), 'mcp__f__hang'), {}, stop.signal);
    pending.catch(() => {});
    await until('the call has arrived', () => lines('effects').length === 1);
    stop.abort();
    await expect(pending).rejects.toMatchObject({ code: 'timeout' });
    await until('it is told', () => lines('cancelled').length === 1);

    const reader = fixture([offered('hang', reads)]);
    const limit = AbortSignal.timeout(1_000);
    const result = await use(await toolOf(hubOf({ r: reader.server }), 'mcp__r__hang'), {}, limit);
    expect(result).toMatchObject({ isError: true, aborted: 'without_effect' });
  });

  it('that answers with an error has answered', async () => {
    const { server } = fixture([offered('fail')]);
    expect(await use(await toolOf(hubOf({ f: server }), 'mcp__f__fail'))).toEqual({
      isError: true,
      text: 'The MCP server answered with an error: disk \ufffd full',
      note: 'mcp_rpc_-32603',
    });
  });

  it('sees nothing of our environment but what the config gives it', async () => {
    process.env.PAWL_TEST_SECRET = 'hidden';
    const { server } = fixture([offered('environment')], { env: { TOKEN: 'given', NONE: undefined } });
    const { text } = await use(await toolOf(hubOf({ f: server }), 'mcp__f__environment'));
    expect(text).not.toContain('hidden');
    expect(Object.keys(JSON.parse(text) as object).sort()).toEqual([
      'CI',
      'GIT_TERMINAL_PROMPT',
      'HOME',
      'LANG',
      'PAGER',
      'PATH',
      'PAWL_CALL',
      'TERM',
      'TOKEN',
    ]);
  });

  it('ends with the hub', async () => {
    const { server } = fixture([offered('act')]);
    const hub = hubOf({ f: server });
    await hub.list();
    const { pid } = hub.status().f!;
    await hub.close();
    expect(isAlive(pid!)).toBe(false);
    expect(hub.status().f!.state).not.toBe('up');
  });

  it('ends with its worker, also when that is killed', async () => {
    const { server } = fixture([offered('hang')]);
    const program = fileURLToPath(new URL('./hub-process.ts', import.meta.url));
    const worker = fork(program, [JSON.stringify(server)], { execArgv: ['--import', 'tsx'] });
    const pid = await new Promise<number>((told) => worker.once('message', (message) => told(message as number)));
    expect(isAlive(pid)).toBe(true);
    worker.kill('SIGKILL');
    await until('the server is gone too', () => !isAlive(pid), 10_000);
  });
});
