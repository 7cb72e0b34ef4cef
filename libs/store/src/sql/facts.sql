-- Selects the server's version, its connection limit and whether it is migrated. Run by
-- Store::check.
SELECT current_setting('server_version_num')::integer AS version,
    current_setting('server_version') AS version_name,
    current_setting('max_connections')::integer AS max_connections,
    EXISTS (
        SELECT FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
        WHERE n.nspname = 'store' AND c.relname = 'migrations'
            AND has_schema_privilege(n.oid, 'USAGE') AND has_column_privilege(c.oid, 'checksum', 'SELECT')
    ) AS has_migrations
