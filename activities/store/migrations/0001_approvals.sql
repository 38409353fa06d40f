ALTER TABLE "pawl"."approval" ALTER COLUMN "answer" SET DATA TYPE text;--> statement-breakpoint
ALTER TABLE "pawl"."approval" ADD COLUMN "turn" text NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."approval" ADD COLUMN "edited_arguments" text;--> statement-breakpoint
ALTER TABLE "pawl"."approval" ADD COLUMN "input" text;--> statement-breakpoint
ALTER TABLE "pawl"."approval" ADD COLUMN "settled_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "pawl"."input" ADD COLUMN "is_left_over" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."session" ADD COLUMN "plan" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "pawl"."approval" ADD CONSTRAINT "approval_turn_turn_id_fk" FOREIGN KEY ("turn") REFERENCES "pawl"."turn"("id") ON DELETE no action ON UPDATE no action;