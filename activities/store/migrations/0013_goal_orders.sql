ALTER TABLE "pawl"."goal_command" DROP CONSTRAINT "goal_command_goal_goal_id_fk";
--> statement-breakpoint
ALTER TABLE "pawl"."goal_command" ADD COLUMN "checks" jsonb;