// StopGate: a block sends the agent back to work, and its reason is what the model reads.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const { workspace, stopHookActive } = JSON.parse(readFileSync(0, 'utf8'));
const open = execFileSync('git', ['-C', workspace, 'status', '--porcelain'], { encoding: 'utf8' });
if (open !== '' && !stopHookActive) {
  console.log(JSON.stringify({ decision: 'block', reason: `Commit these changes, or take them back:\n${open}` }));
}
