-- Makes ledger.writers equal to EventType::writers, for both roles of each service. Run by migrate.
WITH wanted AS (
    SELECT * FROM unnest($1::name[], $2::smallint[], $3::smallint[], $4::text[], $5::boolean[])
        AS w (role, type, stream, source, one_tenant)
), gone AS (
    DELETE FROM ledger.writers w WHERE NOT EXISTS (
        SELECT FROM wanted x WHERE x.role = w.role AND x.type = w.type)
)
INSERT INTO ledger.writers (role, type, stream, source, one_tenant)
SELECT role, type, stream, source, one_tenant FROM wanted
ON CONFLICT (role, type) DO UPDATE
SET stream = excluded.stream, source = excluded.source, one_tenant = excluded.one_tenant
