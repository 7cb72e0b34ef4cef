-- Makes ledger.lessees equal to Stream::owner, for the loop role of each owner. Run by migrate.
WITH wanted AS (
    SELECT * FROM unnest($1::name[], $2::smallint[]) AS l (role, stream)
), gone AS (
    DELETE FROM ledger.lessees l WHERE NOT EXISTS (
        SELECT FROM wanted x WHERE x.role = l.role AND x.stream = l.stream)
)
INSERT INTO ledger.lessees (role, stream) SELECT role, stream FROM wanted ON CONFLICT DO NOTHING
