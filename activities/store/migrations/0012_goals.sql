CREATE TABLE "pawl"."goal_command" (
	"goal" text NOT NULL,
	"id" text NOT NULL,
	"kind" text NOT NULL,
	"fingerprint" text NOT NULL,
	"budget" jsonb,
	"objective" text,
	"by" text,
	"why" text,
	"answer" text,
	"applied_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "goal_command_goal_id_pk" PRIMARY KEY("goal","id")
);
--> statement-breakpoint
CREATE TABLE "pawl"."goal_firing" (
	"template" text NOT NULL,
	"slot" timestamp with time zone NOT NULL,
	"outcome" text NOT NULL,
	"goal" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "goal_firing_template_slot_pk" PRIMARY KEY("template","slot")
);
--> statement-breakpoint
CREATE TABLE "pawl"."goal_round" (
	"goal" text NOT NULL,
	"round" integer NOT NULL,
	"input" text NOT NULL,
	"limits" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "goal_round_goal_round_pk" PRIMARY KEY("goal","round"),
	CONSTRAINT "goal_round_input_unique" UNIQUE("input")
);
--> statement-breakpoint
CREATE TABLE "pawl"."goal_template" (
	"id" text PRIMARY KEY NOT NULL,
	"tenant" text NOT NULL,
	"agent" text NOT NULL,
	"workspace_kind" text NOT NULL,
	"workspace_path" text NOT NULL,
	"workspace_queue" text NOT NULL,
	"objective" text NOT NULL,
	"checks" jsonb NOT NULL,
	"judge" jsonb NOT NULL,
	"budget" jsonb NOT NULL,
	"sceptics" integer NOT NULL,
	"schedule" jsonb NOT NULL,
	"fingerprint" text NOT NULL,
	"created_by" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "pawl"."goal_verdict" (
	"key" text PRIMARY KEY NOT NULL,
	"goal" text NOT NULL,
	"turn" text NOT NULL,
	"source" text NOT NULL,
	"told" jsonb NOT NULL,
	"text" text NOT NULL,
	"next_step" text,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "pawl"."wake" ALTER COLUMN "outcome" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "tenant" text NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "checks" jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "judge" jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "is_final" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "template" text;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "fingerprint" text NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "created_by" text;--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD COLUMN "changed_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."job" ADD COLUMN "goal" text;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD COLUMN "end_running_ms" bigint;--> statement-breakpoint
ALTER TABLE "pawl"."wake" ADD COLUMN "key" text NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."wake" ADD COLUMN "source" text NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."wake" ADD COLUMN "event" text;--> statement-breakpoint
ALTER TABLE "pawl"."wake" ADD COLUMN "by" text;--> statement-breakpoint
ALTER TABLE "pawl"."wake" ADD COLUMN "settled_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "pawl"."goal_command" ADD CONSTRAINT "goal_command_goal_goal_id_fk" FOREIGN KEY ("goal") REFERENCES "pawl"."goal"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."goal_firing" ADD CONSTRAINT "goal_firing_template_goal_template_id_fk" FOREIGN KEY ("template") REFERENCES "pawl"."goal_template"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."goal_round" ADD CONSTRAINT "goal_round_goal_goal_id_fk" FOREIGN KEY ("goal") REFERENCES "pawl"."goal"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."goal_round" ADD CONSTRAINT "goal_round_input_input_id_fk" FOREIGN KEY ("input") REFERENCES "pawl"."input"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."goal_template" ADD CONSTRAINT "goal_template_tenant_tenant_id_fk" FOREIGN KEY ("tenant") REFERENCES "pawl"."tenant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."goal_template" ADD CONSTRAINT "goal_template_agent_agent_hash_fk" FOREIGN KEY ("agent") REFERENCES "pawl"."agent"("hash") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."goal_verdict" ADD CONSTRAINT "goal_verdict_goal_goal_id_fk" FOREIGN KEY ("goal") REFERENCES "pawl"."goal"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "goal_verdict_of_goal" ON "pawl"."goal_verdict" USING btree ("goal","created_at");--> statement-breakpoint
ALTER TABLE "pawl"."goal" ADD CONSTRAINT "goal_tenant_tenant_id_fk" FOREIGN KEY ("tenant") REFERENCES "pawl"."tenant"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "goal_open" ON "pawl"."goal" USING btree ("session") WHERE not "pawl"."goal"."is_final";--> statement-breakpoint
CREATE INDEX "goal_by_tenant" ON "pawl"."goal" USING btree ("tenant","created_at","id");--> statement-breakpoint
CREATE INDEX "goal_of_template" ON "pawl"."goal" USING btree ("template") WHERE "pawl"."goal"."template" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "wake_once" ON "pawl"."wake" USING btree ("goal","key");--> statement-breakpoint
CREATE INDEX "wake_unsettled" ON "pawl"."wake" USING btree ("goal","created_at") WHERE "pawl"."wake"."outcome" is null;