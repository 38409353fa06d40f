// Hands in a job as a process of its own, to be killed: `submit-process <ProcessOrder as JSON>`, forked.
import { createRuns } from '../../client/runs.ts';
import { openHouse } from '../../worker/house.ts';
import { crashConfig, type ProcessOrder, submissionOf } from './crash-config.ts';
import { dieAt } from './kill-at.ts';

const order = JSON.parse(process.argv[2] ?? '') as ProcessOrder;
process.on('disconnect', () => process.exit(1));

const house = await openHouse(crashConfig(order), { embedded: false, onProgress: () => {} });
if (order.dieAt) dieAt(order.dieAt);
process.send?.(await createRuns(house).submit(submissionOf(order.taskQueue)));
process.exit(0);
