ALTER TABLE "pawl"."usage" ADD COLUMN "worst_micro_usd" bigint;--> statement-breakpoint
ALTER TABLE "pawl"."usage" ADD COLUMN "cost_micro_usd" bigint;--> statement-breakpoint
CREATE INDEX "usage_open" ON "pawl"."usage" USING btree ("turn") WHERE "pawl"."usage"."closed_at" is null;