CREATE TABLE "pawl"."sub_agent" (
	"session" text PRIMARY KEY NOT NULL,
	"parent" text NOT NULL,
	"n" integer NOT NULL,
	"call" text NOT NULL,
	"turn" text NOT NULL,
	"origin" text NOT NULL,
	"name" text NOT NULL,
	"mode" text NOT NULL,
	"lease_tokens" bigint,
	"lease_micro_usd" bigint,
	"cancelled_at" timestamp with time zone,
	"cancel_by" text,
	"cancel_why" text,
	"cancel_decided_by" text,
	"ended_at" timestamp with time zone,
	"end_turn" text,
	"report" text,
	"charged_tokens" bigint,
	"charged_micro_usd" bigint,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "sub_agent_call_unique" UNIQUE("call")
);
--> statement-breakpoint
ALTER TABLE "pawl"."sub_agent" ADD CONSTRAINT "sub_agent_session_session_id_fk" FOREIGN KEY ("session") REFERENCES "pawl"."session"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."sub_agent" ADD CONSTRAINT "sub_agent_parent_session_id_fk" FOREIGN KEY ("parent") REFERENCES "pawl"."session"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."sub_agent" ADD CONSTRAINT "sub_agent_call_call_key_fk" FOREIGN KEY ("call") REFERENCES "pawl"."call"("key") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."sub_agent" ADD CONSTRAINT "sub_agent_turn_turn_id_fk" FOREIGN KEY ("turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."sub_agent" ADD CONSTRAINT "sub_agent_origin_input_id_fk" FOREIGN KEY ("origin") REFERENCES "pawl"."input"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."sub_agent" ADD CONSTRAINT "sub_agent_end_turn_turn_id_fk" FOREIGN KEY ("end_turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "sub_agent_of_parent" ON "pawl"."sub_agent" USING btree ("parent","n");--> statement-breakpoint
CREATE INDEX "sub_agent_of_turn" ON "pawl"."sub_agent" USING btree ("turn");--> statement-breakpoint
CREATE INDEX "sub_agent_of_origin" ON "pawl"."sub_agent" USING btree ("origin");--> statement-breakpoint
CREATE INDEX "sub_agent_running" ON "pawl"."sub_agent" USING btree ("parent") WHERE "pawl"."sub_agent"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "sub_agent_ended" ON "pawl"."sub_agent" USING btree ("ended_at");