import type { Db } from './database.ts';

/**
 * One statement made of named parts (`with` clauses), prepared once for each set of parts. Which parts there
 * are must decide its text: what varies between two of the same parts is a value.
 */
export class Statement {
  readonly #base: string;
  readonly #parts = new Map<string, string>();
  readonly #values: unknown[] = [];
  #select = '';

  constructor(base: string) {
    this.#base = base;
  }

  with(name: string, text: string): void {
    this.#parts.set(name, text);
  }

  has(name: string): boolean {
    return this.#parts.has(name);
  }

  /** Its place in the text. */
  value(value: unknown): string {
    this.#values.push(value ?? null);
    return `$${this.#values.length}`;
  }

  json(value: unknown): string {
    return `${this.value(JSON.stringify(value))}::jsonb`;
  }

  select(columns: string): this {
    this.#select = columns;
    return this;
  }

  async run<R extends object>(db: Db): Promise<R[]> {
    const parts = [...this.#parts].map(([name, text]) => `${name} as (${text})`);
    const { rows } = await db.$client.query<R>({
      name: this.#name(),
      text: `with ${parts.join(', ')} select ${this.#select}`,
      values: this.#values,
    });
    return rows;
  }

  /** PostgreSQL tells prepared statements apart by 63 bytes. */
  #name(): string {
    const initials = [...this.#parts.keys()].map((name) => name.slice(0, 3));
    return `${this.#base}_${initials.join('')}`;
  }
}
