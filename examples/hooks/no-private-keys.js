// UserPromptSubmit: exit code 2 denies, with the reason on standard error.
import { readFileSync } from 'node:fs';

const { text } = JSON.parse(readFileSync(0, 'utf8'));
if (text.includes('PRIVATE KEY-----')) {
  console.error('There is a private key in this ticket: take it out, and make a new one.');
  process.exit(2);
}
