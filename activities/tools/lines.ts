import { firstChars } from './text.ts';

interface Line {
  readonly text: string;
  /** The line is longer than what is given of it. */
  readonly cut: boolean;
}

/** Splits UTF-8 bytes into lines in bounded memory: of a line that is too long only the start is kept. */
export async function* linesOf(pieces: AsyncIterable<Buffer>, maxChars: number): AsyncGenerator<Line> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let line = '';
  let cut = false;
  const add = (part: string) => {
    const whole = line + part;
    line = firstChars(whole, maxChars);
    cut ||= line.length < whole.length;
  };
  for await (const piece of pieces) {
    const parts = decoder.decode(piece, { stream: true }).split('\n');
    for (const [i, part] of parts.entries()) {
      if (!cut) add(part);
      if (i === parts.length - 1) break;
      yield { text: line, cut };
      line = '';
      cut = false;
    }
  }
  add(decoder.decode());
  if (line !== '' || cut) yield { text: line, cut };
}
