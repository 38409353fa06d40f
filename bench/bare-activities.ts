import type pg from 'pg';

export interface BareActivities {
  ask(loop: string, round: number): Promise<number>;
  act(loop: string, round: number): Promise<number>;
}

/** `request`: the body that Pawl's own first sample sends. */
export function bareActivities(pool: pg.Pool, baseUrl: string, request: string): BareActivities {
  const once = async (kind: string, loop: string, round: number) => {
    const answer = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': `${loop}/${kind}/${round}` },
      body: request,
    });
    const text = await answer.text();
    await pool.query('insert into bare (loop, kind, round, answer) values ($1, $2, $3, $4)', [loop, kind, round, text]);
    return text.length;
  };
  return { ask: (loop, round) => once('ask', loop, round), act: (loop, round) => once('act', loop, round) };
}
