-- Adds values to a set and returns those that were new; the caller holds the set's lock. Run by
-- store::sets::add.
WITH fresh AS (
    SELECT u.value, row_number() OVER (ORDER BY u.place) AS place
    FROM unnest($4::text[]) WITH ORDINALITY AS u (value, place)
    WHERE NOT EXISTS (
        SELECT FROM planner.partition_values v
        WHERE v.tenant = $1 AND v.workspace = $2 AND v.set_name = $3 AND v.value = u.value)
)
INSERT INTO planner.partition_values (tenant, workspace, set_name, value, ordinal)
SELECT $1, $2, $3, fresh.value, $5 + fresh.place FROM fresh ORDER BY fresh.place
RETURNING value
