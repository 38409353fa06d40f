import { z } from 'zod';

/** Longest that one request may take, redirects and body included. */
export const REQUEST_MS = 60_000;

export const urlInput = z.string().min(1).max(8_000).describe('Absolute URL, http or https.');

export const headersInput = z.record(z.string(), z.string()).default({}).describe('Request headers.');
