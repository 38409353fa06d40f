ALTER TABLE "pawl"."input" ADD COLUMN "dropped_by" text;--> statement-breakpoint
ALTER TABLE "pawl"."input" ADD COLUMN "dropped_why" text;--> statement-breakpoint
ALTER TABLE "pawl"."input" ADD COLUMN "dropped_at" timestamp with time zone;