CREATE TABLE "pawl"."outside_event" (
	"session" text NOT NULL,
	"id" text NOT NULL,
	"name" text NOT NULL,
	"body" text NOT NULL,
	"sender" text,
	"waits" integer NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	CONSTRAINT "outside_event_session_id_pk" PRIMARY KEY("session","id")
);
--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD COLUMN "origin" text;--> statement-breakpoint
UPDATE "pawl"."turn" SET "origin" = "input";--> statement-breakpoint
ALTER TABLE "pawl"."turn" ALTER COLUMN "origin" SET NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."outside_event" ADD CONSTRAINT "outside_event_session_session_id_fk" FOREIGN KEY ("session") REFERENCES "pawl"."session"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "outside_event_untaken" ON "pawl"."outside_event" USING btree ("session","name","created_at") WHERE "pawl"."outside_event"."waits" = 0;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD CONSTRAINT "turn_origin_input_id_fk" FOREIGN KEY ("origin") REFERENCES "pawl"."input"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "approval_unanswered" ON "pawl"."approval" USING btree ("turn") WHERE "pawl"."approval"."answer" is null;--> statement-breakpoint
CREATE INDEX "approval_by_input" ON "pawl"."approval" USING btree ("input") WHERE "pawl"."approval"."input" is not null;--> statement-breakpoint
CREATE INDEX "turn_by_origin" ON "pawl"."turn" USING btree ("origin","n");