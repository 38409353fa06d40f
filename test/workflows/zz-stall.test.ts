import { it } from 'vitest';
import { callTools, say } from '../../testing/index.ts';
import { conversations } from '../support/conversations.ts';
import { runsOf } from '../support/engine-facts.ts';
import { testHouse } from '../support/test-house.ts';
const talk = conversations();
it('stall', { timeout: 300_000 }, async () => {
  const at = await testHouse({ rules: talk.rules });
  const times: number[] = [];
  let dumped = 0;
  for (let round = 0; round < 25; round += 1) {
    await Promise.all(Array.from({ length: 6 }, async (_, n) => {
      const key = `s ${round} ${n}`;
      talk.on(key, (r) => r.messages.some((m) => m.role === 'tool') ? say('Done.') : callTools([{ name: 'shell', arguments: { command: 'true' } }]));
      const began = Date.now();
      const { session } = await at.submit(key);
      await at.ended(session, 1, 60_000);
      const took = Date.now() - began;
      times.push(took);
      if (took > 8_000 && dumped < 3) {
        dumped += 1;
        for (const id of [`session/${session}`, `turn/${session}/1`]) {
          const runs = await runsOf(at, id);
          console.log(id, took, '\n' + runs.map((r) => r.events?.map((e) => `${Number(e.eventTime?.seconds) % 1000}.${String(Math.floor((e.eventTime?.nanos ?? 0) / 1e6)).padStart(3, '0')} ${Object.keys(e).find((k) => k.endsWith('Attributes'))?.replace('EventAttributes', '')} ${e.activityTaskScheduledEventAttributes?.activityType?.name ?? ''} ${JSON.stringify(e.workflowTaskTimedOutEventAttributes ?? e.workflowTaskFailedEventAttributes ?? e.activityTaskStartedEventAttributes?.lastFailure?.message ?? '').slice(0, 300)}`).join('\n')).join('\n----\n'));
        }
      }
    }));
  }
  console.log('max', Math.max(...times), 'p50', times.sort((a, b) => a - b)[75]);
  await at.close();
});
