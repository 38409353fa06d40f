#!/bin/sh
# Runs once, when the volume is new: two roles that can't read each other's tables, and their databases.
set -eu

psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -v password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE pawl LOGIN PASSWORD :'password';
CREATE ROLE temporal LOGIN PASSWORD :'password';
CREATE DATABASE pawl OWNER pawl;
CREATE DATABASE temporal OWNER temporal;
CREATE DATABASE temporal_visibility OWNER temporal;
REVOKE CONNECT ON DATABASE pawl, temporal, temporal_visibility FROM PUBLIC;
SQL
