import { describe, expect, it } from 'vitest';
import { toResult } from '../../../activities/mcp/content.ts';
import { createMcpHub } from '../../../activities/mcp/hub.ts';
import { toolName } from '../../../activities/mcp/names.ts';
import { withRemoteTools } from '../../../activities/mcp/remote-registry.ts';
import { createRegistry } from '../../../activities/tools/registry.ts';
import { until } from '../../support/until.ts';
import { expectStorable } from '../tools/tool-context.ts';
import { fixture, hubOf, offered, reads } from './fixture.ts';

describe('names', () => {
  it.each([
    ['github', 'create_issue', 'mcp__github__create_issue'],
    ['github', 'issues.create', 'mcp__github__issues_create_87958dcd'],
    ['github', 'issues/create', 'mcp__github__issues_create_c63b31fc'],
    ['s', 'x'.repeat(80), `mcp__s__${'x'.repeat(47)}_cbf4205d`],
    ['s', 'größe', expect.stringMatching(/^mcp__s__gr__e_[0-9a-f]{8}$/)],
    ['s', '', 'mcp__s__'],
  ])('%s, %s', (server, tool, name) => {
    expect(toolName(server, tool)).toEqual(name);
    expect(toolName(server, tool)).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  });

  it.each(['a__b', '_a', 'a_', 'a b', '', 'x'.repeat(33), 'ä'])('a server may not be called "%s"', (name) => {
    expect(() => createMcpHub({ [name]: { command: 'x' } })).toThrow('must be letters and digits');
  });
});

describe('results', () => {
  const text = (answer: object, chars = 1_000) => toResult(answer as never, chars).text;

  it.each([
    [
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      'a\nb',
    ],
    [{ content: [{ type: 'image', data: 'AAAA', mimeType: 'image/png' }] }, '[image, image/png, 3 bytes; not shown]'],
    [{ content: [{ type: 'audio', data: 'AAA=', mimeType: 'audio/wav' }] }, '[audio, audio/wav, 2 bytes; not shown]'],
    [
      { content: [{ type: 'resource', resource: { uri: 'x://y', blob: 'AA==' } }] },
      '[resource, x://y, 1 bytes; not shown]',
    ],
    [{ content: [{ type: 'resource_link', uri: 'x://y', name: 'a\nb' }] }, '[resource link, a b, x://y; not shown]'],
    [{ content: [{ type: 'hologram' }] }, '[content of the unknown kind hologram; not shown]'],
    [{ content: [], structuredContent: { n: 1 } }, '{"n":1}'],
    [{ content: [{ type: 'text', text: 'a' }], structuredContent: { n: 1 } }, 'a'],
    [{ content: [] }, '(The tool returned nothing.)'],
    [{}, '(The tool returned nothing.)'],
    [{ content: 'nonsense' }, '(The tool returned nothing.)'],
    [{ content: [null, 7, { type: 'text', text: 7 }] }, expect.stringContaining('unknown kind')],
  ])('%j', (answer, expected) => expect(text(answer)).toEqual(expected));

  it('an error of the tool is an error result', () => {
    expect(toResult({ isError: true, content: [{ type: 'text', text: 'no' }] }, 100)).toEqual({
      isError: true,
      text: 'no',
      note: 'mcp_error',
    });
  });

  it('any text can be stored; what is cut can be paged through', () => {
    const long = `a\0\ud800${'x'.repeat(5_000)}`;
    const result = toResult({ content: [{ type: 'text', text: long }] }, 300);
    expectStorable(result.text);
    expect(result.text.length).toBeLessThanOrEqual(300);
    expect(result.output?.toString()).toBe(`a\ufffd\ufffd${'x'.repeat(5_000)}`);
  });
});

describe('the registry with remote tools', () => {
  it('offers what is there now, and finds what was there', async () => {
    const { server, offer } = fixture([
      // One bad tool must not cost the others.
      offered('echo', { description: 'x\0\ud800'.repeat(2_000), ...reads }),
      offered('act', { inputSchema: { type: 'object', properties: { 'a\0': { type: 'string' } } } }),
      offered('task', { execution: { taskSupport: 'required' } }),
      offered('echo', { description: 'again' }),
      offered('choice', { inputSchema: { anyOf: [{ type: 'object', properties: { a: { type: 'string' } } }] } }),
      offered('list', { inputSchema: { type: 'array' } }),
      { title: 'no name' },
      7,
    ]);
    const hub = hubOf({ f: server });
    const registry = withRemoteTools(createRegistry([]), hub);
    expect(registry.describe(['mcp__f__*'])).toEqual([]);
    await Promise.all([registry.refresh(), registry.refresh()]);
    expect(hub.status().f?.starts).toBe(1);
    const stored = registry.describe(['mcp__f__echo', 'mcp__f__*', 'mcp__other__*', 'mcp__f__gone']);
    expect(stored.map(({ name, effect }) => [name, effect])).toEqual([
      ['mcp__f__echo', 'none'],
      ['mcp__f__act', 'once'],
      ['mcp__f__choice', 'once'],
    ]);
    expect(hub.status().f).toMatchObject({ tools: 4, leftOut: 4 });
    expect(stored[0]!.description.length).toBeLessThanOrEqual(1_024);
    expect(JSON.stringify(stored)).not.toMatch(/\\u0000|\\ud800/);
    offer([]);
    process.kill(hub.status().f!.pid!, 'SIGKILL');
    await until('its death is known', () => hub.status().f!.state === 'down');
    await registry.refresh();
    expect(registry.describe(['mcp__f__*'])).toEqual([]);
    expect(registry.lookup('mcp__f__act', ['mcp__f__act'])).toMatchObject({ ok: true });
    expect(registry.lookup('mcp__f__act', [])).toMatchObject({ ok: false });
  });
});
