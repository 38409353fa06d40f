CREATE TABLE "pawl"."output_schema" (
	"hash" text PRIMARY KEY NOT NULL,
	"schema" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "pawl"."job" ADD COLUMN "output_schema" text;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD COLUMN "output_schema" text;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD COLUMN "end_structured_output" jsonb;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD COLUMN "end_contract" text;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD COLUMN "end_resume_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "pawl"."job" ADD CONSTRAINT "job_output_schema_output_schema_hash_fk" FOREIGN KEY ("output_schema") REFERENCES "pawl"."output_schema"("hash") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pawl"."turn" ADD CONSTRAINT "turn_output_schema_output_schema_hash_fk" FOREIGN KEY ("output_schema") REFERENCES "pawl"."output_schema"("hash") ON DELETE no action ON UPDATE no action;