export {
  type ChatRequest,
  type ChatRequestMessage,
  countToolResults,
  lastUserText,
  pairingFault,
} from './chat-request.ts';
export {
  callTools,
  chunks,
  type Hold,
  hold,
  type Pace,
  paced,
  type Reply,
  type ScriptedCall,
  say,
  status,
} from './reply.ts';
export {
  type RecordedRequest,
  type ScriptedProvider,
  type ScriptedProviderOptions,
  type ScriptedReply,
  startScriptedProvider,
} from './scripted-provider.ts';
export { type ProviderProcess, startProviderProcess } from './start-provider-process.ts';
export { C, type ChunkPayload, D, F, type Frame, PING, R, T, U, type WireName, X } from './wire.ts';
