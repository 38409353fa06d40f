/** Where a command writes: results to stdout, everything about it to stderr. */
export interface Output {
  write(text: string): void;
  line(line: string): void;
  json(value: unknown): void;
  note(line: string): void;
}

export const terminal: Output = {
  write: (text) => void process.stdout.write(text),
  line: (line) => void process.stdout.write(`${line}\n`),
  json: (value) => void process.stdout.write(`${JSON.stringify(value)}\n`),
  note: (line) => void process.stderr.write(`${line}\n`),
};
