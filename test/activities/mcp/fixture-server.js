// @ts-check
// A small MCP server on stdio that misbehaves on request. Its folder (argv[2]) is how a test sees and steers it:
// `starts` and `effects` get a line each, `cancelled` too; while `broken` is there it ends at once; `tools.json` is its list.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const folder = process.argv[2] ?? '.';
/** @param {string} name @param {string} line */
const note = (name, line) => appendFileSync(join(folder, name), `${line}\n`);
/** @param {unknown} message */
const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...Object(message) })}\n`);

note('starts', String(process.pid));
if (existsSync(join(folder, 'broken'))) {
  process.stderr.write('no such database\0\n');
  process.exit(1);
}

/** @type {Record<string, (id: number, args: Record<string, unknown>) => void>} */
const tools = {
  act: (id) => (note('effects', 'act'), answer(id, 'done')),
  act_and_die: () => (note('effects', 'act'), process.kill(process.pid, 'SIGKILL')),
  read_and_die_once: (id) => {
    note('effects', 'read');
    if (readFileSync(join(folder, 'effects'), 'utf8').split('\n').length === 2) process.kill(process.pid, 'SIGKILL');
    answer(id, 'read');
  },
  answer_and_leave: (id) => (answer(id, 'last words'), process.exit(0)),
  hang: () => note('effects', 'hang'),
  fail: (id) => say({ id, error: { code: -32603, message: 'disk \0 full' } }),
  announce: (id) => (say({ method: 'notifications/tools/list_changed' }), answer(id, 'announced')),
  environment: (id) => answer(id, JSON.stringify(process.env)),
  echo: (id, args) => answer(id, JSON.stringify(args)),
};

/** @param {number} id @param {string} text */
function answer(id, text) {
  say({ id, result: { content: [{ type: 'text', text }] } });
}

process.stdout.write('Welcome, this line is no message\n');
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'initialize') {
    const { protocolVersion } = params;
    say({
      id,
      result: {
        protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'f', version: '1' },
      },
    });
  } else if (method === 'tools/list') {
    say({ id, result: { tools: JSON.parse(readFileSync(join(folder, 'tools.json'), 'utf8')) } });
  } else if (method === 'tools/call') {
    tools[params.name]?.(id, params.arguments);
  } else if (method === 'notifications/cancelled') {
    note('cancelled', String(params.requestId));
  }
});
