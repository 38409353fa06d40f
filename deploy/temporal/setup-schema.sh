#!/bin/sh
# Makes or updates both of Temporal's schemas; safe to run again. The password comes in SQL_PASSWORD.
set -eu

for name in temporal visibility; do
  database=temporal
  [ "$name" = visibility ] && database=temporal_visibility
  tool="temporal-sql-tool --plugin postgres12 --ep postgres -p 5432 -u temporal --db $database"
  $tool setup-schema -v 0.0
  $tool update-schema -d "/etc/temporal/schema/postgresql/v12/$name/versioned"
done
