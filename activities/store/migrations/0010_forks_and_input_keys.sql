ALTER TABLE "pawl"."input" ADD COLUMN "fingerprint" text;--> statement-breakpoint
ALTER TABLE "pawl"."session" ADD COLUMN "forked_from" text;--> statement-breakpoint
ALTER TABLE "pawl"."session" ADD COLUMN "forked_at" text;