export { recoveryWorkflow } from './recovery.ts';
export { sessionWorkflow } from './session.ts';
export { turnWorkflow } from './turn.ts';
