export { goalWorkflow } from './goal.ts';
export { recoveryWorkflow } from './recovery.ts';
export { sessionWorkflow } from './session.ts';
export { turnWorkflow } from './turn.ts';
export { wakeWorkflow } from './wake.ts';
