-- Selects the current user unless it is a superuser. Run by migrate.
SELECT rolname::text FROM pg_roles WHERE rolname = current_user AND NOT rolsuper
