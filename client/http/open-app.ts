import type { OpenAPIHono } from '@hono/zod-openapi';

/** The app that routes are added to. */
export type App = OpenAPIHono;
