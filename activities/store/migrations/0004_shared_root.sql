CREATE TABLE "pawl"."shared_root" (
	"task_queue" text PRIMARY KEY NOT NULL,
	"mark" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
