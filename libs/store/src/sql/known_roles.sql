-- Called by the migration.
SELECT rolname::text, coalesce(rolconfig, '{}') FROM pg_roles WHERE rolname = ANY ($1)
