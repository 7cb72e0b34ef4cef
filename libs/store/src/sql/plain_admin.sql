-- Called by the migration: who runs it, unless it is a superuser.
SELECT rolname::text FROM pg_roles WHERE rolname = current_user AND NOT rolsuper
