/** All tables, by room; none knows one below it. */
export { pawl } from './schema/columns.ts';
export * from './schema/definitions.ts';
export * from './schema/sessions.ts';
export * from './schema/calls.ts';
export * from './schema/goals.ts';
export * from './schema/records.ts';
export type {
  ApprovalAnswer,
  Asked,
  OutcomeAnswer,
  OutputSchema,
  StoredAgent,
  StoredTool,
  StructuredOutput,
} from './stored.ts';
