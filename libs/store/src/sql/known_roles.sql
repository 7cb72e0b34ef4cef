-- Selects the settings of existing roles. Run by migrate.
SELECT rolname::text, coalesce(rolconfig, '{}') FROM pg_roles WHERE rolname = ANY ($1)
