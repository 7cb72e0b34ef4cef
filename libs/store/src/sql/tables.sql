-- Selects the tables of our schemas with their row security. Run by migrate.
SELECT n.nspname::text AS schema, c.relname::text AS name, c.relispartition AS is_partition,
    EXISTS (
        SELECT FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND NOT a.attisdropped
    ) AS has_tenant,
    c.relrowsecurity AND c.relforcerowsecurity AS is_forced,
    ARRAY(SELECT p.polname::text FROM pg_policy p WHERE p.polrelid = c.oid ORDER BY p.polname) AS policies
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p')
ORDER BY n.nspname, c.relname
