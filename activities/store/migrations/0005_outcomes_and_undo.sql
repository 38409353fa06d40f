ALTER TABLE "pawl"."approval" ADD COLUMN "note" text;--> statement-breakpoint
ALTER TABLE "pawl"."effect" ADD COLUMN "cut_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "pawl"."effect" ADD COLUMN "undo" text;--> statement-breakpoint
ALTER TABLE "pawl"."effect" ADD COLUMN "undo_attempt" text;--> statement-breakpoint
ALTER TABLE "pawl"."effect" ADD COLUMN "undo_started_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "pawl"."effect" ADD COLUMN "undo_settled_at" timestamp with time zone;