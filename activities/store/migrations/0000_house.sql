CREATE SCHEMA IF NOT EXISTS "pawl";
--> statement-breakpoint
CREATE TABLE "pawl"."agent" (
	"hash" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"definition" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."approval" (
	"id" text PRIMARY KEY NOT NULL,
	"call" text NOT NULL,
	"asked" jsonb NOT NULL,
	"answer" jsonb,
	"answered_by" text,
	"answered_at" timestamp with time zone,
	"expires_at" timestamp with time zone NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."blob" (
	"hash" text PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"size" bigint NOT NULL,
	"data" "bytea" NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."call" (
	"key" text PRIMARY KEY NOT NULL,
	"turn" text NOT NULL,
	"assistant" text NOT NULL,
	"ordinal" integer NOT NULL,
	"step" integer NOT NULL,
	"provider_call_id" text NOT NULL,
	"tool" text NOT NULL,
	"effect" text NOT NULL,
	"arguments" text NOT NULL,
	"arguments_hash" text NOT NULL,
	"status" text,
	"result" text,
	"blob" text,
	"note" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"finished_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "pawl"."cancel" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"id" text NOT NULL,
	"turn" text NOT NULL,
	"by" text NOT NULL,
	"why" text,
	"decided_by" text NOT NULL,
	"detail" text NOT NULL,
	"answer" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "cancel_id_unique" UNIQUE("id")
);
--> statement-breakpoint
CREATE TABLE "pawl"."commit" (
	"key" text PRIMARY KEY NOT NULL,
	"turn" text NOT NULL,
	"run" text NOT NULL,
	"result" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."delta" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"stream" text NOT NULL,
	"turn" text NOT NULL,
	"step" integer NOT NULL,
	"attempt" text NOT NULL,
	"n" integer NOT NULL,
	"channel" text NOT NULL,
	"chunk" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."effect" (
	"key" text PRIMARY KEY NOT NULL,
	"turn" text NOT NULL,
	"tool" text NOT NULL,
	"effect" text NOT NULL,
	"policy_version" integer NOT NULL,
	"arguments_hash" text NOT NULL,
	"state" text NOT NULL,
	"attempt" text,
	"lease_until" timestamp with time zone,
	"host" text,
	"boot" text,
	"pid" integer,
	"pid_started" text,
	"process_group" jsonb,
	"details" jsonb,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"started_at" timestamp with time zone,
	"settled_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "pawl"."event" (
	"stream" text NOT NULL,
	"seq" bigint NOT NULL,
	"key" text NOT NULL,
	"session" text NOT NULL,
	"turn" text,
	"layer" text NOT NULL,
	"kind" text NOT NULL,
	"body" jsonb NOT NULL,
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "event_stream_seq_pk" PRIMARY KEY("stream","seq")
);
--> statement-breakpoint
CREATE TABLE "pawl"."goal" (
	"id" text PRIMARY KEY NOT NULL,
	"session" text NOT NULL,
	"objective" text NOT NULL,
	"status" text NOT NULL,
	"state" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."input" (
	"id" text PRIMARY KEY NOT NULL,
	"session" text NOT NULL,
	"seq" bigserial NOT NULL,
	"kind" text NOT NULL,
	"class" text NOT NULL,
	"body" text NOT NULL,
	"sender" text,
	"status" text DEFAULT 'queued' NOT NULL,
	"turn" text,
	"message" text,
	"dispatched_at" timestamp with time zone,
	"edit_lock_by" text,
	"edit_lock_until" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."job" (
	"id" text PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"session" text NOT NULL,
	"input" text NOT NULL,
	"idempotency_key" text NOT NULL,
	"fingerprint" text NOT NULL,
	"ticket" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."message" (
	"hash" text PRIMARY KEY NOT NULL,
	"parent" text NOT NULL,
	"kind" text NOT NULL,
	"body" jsonb NOT NULL,
	"depth" integer NOT NULL,
	"tokens" integer NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."outbox" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"receiver" text NOT NULL,
	"event" text NOT NULL,
	"body" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"acknowledged_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "pawl"."session" (
	"id" text PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"stream" text NOT NULL,
	"parent" text,
	"agent" text NOT NULL,
	"head" text NOT NULL,
	"event_seq" bigint DEFAULT 0 NOT NULL,
	"state" text DEFAULT 'open' NOT NULL,
	"title" text,
	"workspace_kind" text NOT NULL,
	"workspace_path" text NOT NULL,
	"workspace_queue" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."tenant" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."token" (
	"id" text PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"hash" text NOT NULL,
	"scopes" text[] NOT NULL,
	"expires_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "token_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
CREATE TABLE "pawl"."tool_list" (
	"hash" text PRIMARY KEY NOT NULL,
	"tools" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pawl"."turn" (
	"id" text PRIMARY KEY NOT NULL,
	"session" text NOT NULL,
	"n" integer NOT NULL,
	"generation" integer DEFAULT 0 NOT NULL,
	"base_head" text NOT NULL,
	"head" text NOT NULL,
	"input" text NOT NULL,
	"agent" text NOT NULL,
	"tools" text NOT NULL,
	"opened_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"ended_at" timestamp with time zone,
	"end_reason" text,
	"end_detail" text,
	"end_decided_by" text,
	"end_signal" jsonb,
	"end_phase" text,
	"end_step" integer,
	"end_usage" jsonb,
	"end_by" text,
	"end_why" text,
	"recorded_by" text
);
--> statement-breakpoint
CREATE TABLE "pawl"."turn_run" (
	"turn" text NOT NULL,
	"run" text NOT NULL,
	"generation" integer NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "turn_run_turn_run_pk" PRIMARY KEY("turn","run")
);
--> statement-breakpoint
CREATE TABLE "pawl"."usage" (
	"attempt" text PRIMARY KEY NOT NULL,
	"sample" text NOT NULL,
	"session" text NOT NULL,
	"turn" text NOT NULL,
	"step" integer NOT NULL,
	"model" text NOT NULL,
	"output_cap_tokens" integer NOT NULL,
	"outcome" text,
	"input_tokens" integer,
	"cached_tokens" integer,
	"output_tokens" integer,
	"reasoning_tokens" integer,
	"complete" boolean DEFAULT false NOT NULL,
	"wasted" boolean DEFAULT false NOT NULL,
	"cost_usd" double precision,
	"opened_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"closed_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "pawl"."wake" (
	"id" text PRIMARY KEY NOT NULL,
	"goal" text NOT NULL,
	"outcome" text NOT NULL,
	"why" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "pawl"."approval" ADD CONSTRAINT "approval_call_call_key_fk" FOREIGN KEY ("call") REFERENCES "pawl"."call"("key") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."call" ADD CONSTRAINT "call_turn_turn_id_fk" FOREIGN KEY ("turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."cancel" ADD CONSTRAINT "cancel_turn_turn_id_fk" FOREIGN KEY ("turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."commit" ADD CONSTRAINT "commit_turn_turn_id_fk" FOREIGN KEY ("turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."effect" ADD CONSTRAINT "effect_key_call_key_fk" FOREIGN KEY ("key") REFERENCES "pawl"."call"("key") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."effect" ADD CONSTRAINT "effect_turn_turn_id_fk" FOREIGN KEY ("turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD CONSTRAINT "goal_session_session_id_fk" FOREIGN KEY ("session") REFERENCES "pawl"."session"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."input" ADD CONSTRAINT "input_session_session_id_fk" FOREIGN KEY ("session") REFERENCES "pawl"."session"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."job" ADD CONSTRAINT "job_tenant_tenant_id_fk" FOREIGN KEY ("tenant") REFERENCES "pawl"."tenant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."job" ADD CONSTRAINT "job_session_session_id_fk" FOREIGN KEY ("session") REFERENCES "pawl"."session"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."job" ADD CONSTRAINT "job_input_input_id_fk" FOREIGN KEY ("input") REFERENCES "pawl"."input"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."session" ADD CONSTRAINT "session_tenant_tenant_id_fk" FOREIGN KEY ("tenant") REFERENCES "pawl"."tenant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."session" ADD CONSTRAINT "session_agent_agent_hash_fk" FOREIGN KEY ("agent") REFERENCES "pawl"."agent"("hash") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."token" ADD CONSTRAINT "token_tenant_tenant_id_fk" FOREIGN KEY ("tenant") REFERENCES "pawl"."tenant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD CONSTRAINT "turn_session_session_id_fk" FOREIGN KEY ("session") REFERENCES "pawl"."session"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD CONSTRAINT "turn_input_input_id_fk" FOREIGN KEY ("input") REFERENCES "pawl"."input"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD CONSTRAINT "turn_agent_agent_hash_fk" FOREIGN KEY ("agent") REFERENCES "pawl"."agent"("hash") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD CONSTRAINT "turn_tools_tool_list_hash_fk" FOREIGN KEY ("tools") REFERENCES "pawl"."tool_list"("hash") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."turn_run" ADD CONSTRAINT "turn_run_turn_turn_id_fk" FOREIGN KEY ("turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."usage" ADD CONSTRAINT "usage_turn_turn_id_fk" FOREIGN KEY ("turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."wake" ADD CONSTRAINT "wake_goal_goal_id_fk" FOREIGN KEY ("goal") REFERENCES "pawl"."goal"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "call_in_message" ON "pawl"."call" USING btree ("assistant","ordinal");--> statement-breakpoint
CREATE INDEX "call_of_turn" ON "pawl"."call" USING btree ("turn","step");--> statement-breakpoint
CREATE INDEX "cancel_of_turn" ON "pawl"."cancel" USING btree ("turn","seq");--> statement-breakpoint
CREATE INDEX "delta_of_stream" ON "pawl"."delta" USING btree ("stream","id");--> statement-breakpoint
CREATE UNIQUE INDEX "delta_once" ON "pawl"."delta" USING btree ("attempt","n");--> statement-breakpoint
CREATE INDEX "effect_unsettled" ON "pawl"."effect" USING btree ("turn") WHERE "pawl"."effect"."state" in ('intended', 'started', 'unknown');--> statement-breakpoint
CREATE UNIQUE INDEX "event_once" ON "pawl"."event" USING btree ("stream","key");--> statement-breakpoint
CREATE INDEX "event_of_turn" ON "pawl"."event" USING btree ("turn","seq");--> statement-breakpoint
CREATE INDEX "input_waiting" ON "pawl"."input" USING btree ("session","class","seq") WHERE "pawl"."input"."status" in ('queued', 'forwarded');--> statement-breakpoint
CREATE INDEX "input_undispatched" ON "pawl"."input" USING btree ("created_at") WHERE "pawl"."input"."dispatched_at" is null and "pawl"."input"."status" = 'queued';--> statement-breakpoint
CREATE UNIQUE INDEX "job_by_key" ON "pawl"."job" USING btree ("tenant","idempotency_key");--> statement-breakpoint
CREATE INDEX "job_by_tenant" ON "pawl"."job" USING btree ("tenant","created_at","id");--> statement-breakpoint
CREATE INDEX "job_by_input" ON "pawl"."job" USING btree ("input");--> statement-breakpoint
CREATE UNIQUE INDEX "outbox_once" ON "pawl"."outbox" USING btree ("receiver","event");--> statement-breakpoint
CREATE INDEX "outbox_open" ON "pawl"."outbox" USING btree ("receiver","created_at") WHERE "pawl"."outbox"."acknowledged_at" is null;--> statement-breakpoint
CREATE INDEX "session_by_tenant" ON "pawl"."session" USING btree ("tenant","created_at","id");--> statement-breakpoint
CREATE UNIQUE INDEX "turn_of_session" ON "pawl"."turn" USING btree ("session","n");--> statement-breakpoint
CREATE UNIQUE INDEX "turn_open" ON "pawl"."turn" USING btree ("session") WHERE "pawl"."turn"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "usage_of_turn" ON "pawl"."usage" USING btree ("turn");--> statement-breakpoint
CREATE INDEX "usage_of_sample" ON "pawl"."usage" USING btree ("sample");