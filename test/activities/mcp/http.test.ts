import { describe, expect, it, vi } from 'vitest';
import { type Answering, fakeHttp } from './fake-http.ts';
import { hubOf, offered, reads, toolOf, use } from './fixture.ts';

const once = [offered('act')];
const reader = [offered('act', reads)];

describe('a server over HTTP, the effect applied', () => {
  it.each<Answering>(['json', 'sse'])('an answer as %s', async (how) => {
    const server = await fakeHttp(once);
    server.answerWith(how);
    expect(await use(await toolOf(hubOf({ h: { url: server.url } }), 'mcp__h__act'))).toEqual({
      isError: false,
      text: 'done',
    });
    expect(server.effects).toEqual(['act']);
  });

  // Case 19: each of these was sent again, and happened twice.
  it.each<[Answering, string]>([
    ['drop', 'UND_ERR_SOCKET'],
    ['empty_stream', 'dropped'],
    ['half_stream', 'dropped'],
    ['session_gone', 'http_404'],
    ['gateway_timeout', 'http_504'],
    ['gateway_closed', 'closed'],
  ])('%s: unknown, counted once, and the next call works', async (how, code) => {
    const server = await fakeHttp(once);
    const tool = await toolOf(hubOf({ h: { url: server.url } }), 'mcp__h__act');
    server.answerWith(how);
    await expect(use(tool)).rejects.toMatchObject({ name: 'McpCallLost', code });
    expect(server.effects).toEqual(['act']);
    expect(await use(tool)).toMatchObject({ text: 'done' });
    expect(server.effects).toEqual(['act', 'act']);
  });

  it('an answer after the time limit: unknown, counted once, and the server is told', async () => {
    const server = await fakeHttp(once);
    const tool = await toolOf(hubOf({ h: { url: server.url } }), 'mcp__h__act');
    server.answerWith('never');
    await expect(use(tool, {}, AbortSignal.timeout(500))).rejects.toMatchObject({
      name: 'McpCallLost',
      code: 'timeout',
    });
    expect(server.effects).toEqual(['act']);
    await vi.waitFor(() => expect(server.methods.at(-1)).toBe('notifications/cancelled'));
  });

  it.each<Answering>(['drop', 'empty_stream', 'half_stream', 'session_gone', 'gateway_timeout'])(
    '%s, of a tool that only reads: asked once more',
    async (how) => {
      const server = await fakeHttp(reader);
      const tool = await toolOf(hubOf({ h: { url: server.url } }), 'mcp__h__act');
      server.answerWith(how);
      expect(await use(tool)).toEqual({ isError: false, text: 'done' });
      expect(server.effects).toEqual(['act', 'act']);
      server.answerWith(how, how);
      expect(await use(tool)).toMatchObject({ isError: true, note: expect.stringMatching(/^mcp_/) });
      expect(server.effects).toHaveLength(4);
    },
  );

  it('a request turned away at the door is an error, not an unknown', async () => {
    const server = await fakeHttp(once);
    const tool = await toolOf(hubOf({ h: { url: server.url } }), 'mcp__h__act');
    server.answerWith('unauthorized');
    expect(await use(tool)).toMatchObject({ isError: true, note: 'mcp_http_401' });
  });

  it.each([
    ['once', once],
    ['none', reader],
  ])('a session that has expired is begun again before a call with effect %s', async (_, tools) => {
    const server = await fakeHttp(tools);
    const tool = await toolOf(hubOf({ h: { url: server.url } }), 'mcp__h__act');
    server.forgetSessions();
    // Two at once want one new session.
    const results = await Promise.all([use(tool), use(tool)]);
    expect(results.map(({ text }) => text)).toEqual(['done', 'done']);
    expect(server.sessions).toEqual(['s1', 's2']);
    expect(server.effects).toHaveLength(2);
  });

  it('headers come from the environment; a server whose variable is missing is down', async () => {
    vi.stubEnv('PAWL_TEST_TOKEN', 'Bearer t');
    const server = await fakeHttp(once);
    const hub = hubOf({
      h: { url: server.url, headersEnv: { authorization: 'PAWL_TEST_TOKEN' } },
      bare: { url: server.url, headersEnv: { authorization: 'PAWL_TEST_NOT_SET' } },
    });
    await hub.list();
    expect(server.headers.every(({ authorization }) => authorization === 'Bearer t')).toBe(true);
    expect(hub.status().bare?.why).toContain('PAWL_TEST_NOT_SET, which is not set');
    vi.unstubAllEnvs();
  });

  it('the key of a call goes along only with a tool that the config calls keyed', async () => {
    const server = await fakeHttp([offered('act', reads), offered('other')]);
    const hub = hubOf({ h: { url: server.url, effects: { act: 'keyed' } } });
    const [act, other] = [await toolOf(hub, 'mcp__h__act'), await toolOf(hub, 'mcp__h__other')];
    expect([act.effect, other.effect]).toEqual(['keyed', 'once']);
    await use(act);
    await use(other);
    expect(server.keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), null]);
  });

  it('that offers other tools at the next turn is believed, and one that is gone has none', async () => {
    const tools = [offered('act')];
    const server = await fakeHttp(tools);
    const hub = hubOf({ h: { url: server.url } });
    await hub.list();
    tools.push(offered('more'));
    expect((await hub.list()).map(({ name }) => name)).toEqual(['mcp__h__act', 'mcp__h__more']);
    server.stop();
    expect(await hub.list()).toEqual([]);
    expect(hub.status().h).toMatchObject({ state: 'connecting', tools: 0 });
  });
});
