import { workflowInfo } from '@temporalio/workflow';
import { POLICY } from './core/policy.ts';

/** A history stays short: past this a fresh run takes over. */
export function isHistoryLong(): boolean {
  const { historyLength, continueAsNewSuggested } = workflowInfo();
  return historyLength >= POLICY.continueAsNew.atHistoryEvents || continueAsNewSuggested;
}
