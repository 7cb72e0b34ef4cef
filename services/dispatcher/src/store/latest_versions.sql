-- Called for a batch of envelopes whose tasks read something: of each wanted partition the version that the plan takes
-- over from the run it retries, or else the one that readers get. A version with an empty output, which no attempt
-- reports, is a mapped task's: it comes with item -2, and after it what became of every child, in the order of their
-- items and without a version where one made nothing. OFFSET 0 keeps the lookup of children one by their key.
WITH found AS MATERIALIZED (
    SELECT w.place, w.asset_key, coalesce(pinned.attempt_id, p.materialization_id) AS attempt_id,
        coalesce(pinned.output, latest.output) AS output, coalesce(pinned.run_number, latest.run_number) AS run_number,
        coalesce(pinned.ordinal, latest.ordinal) AS ordinal
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[]) WITH ORDINALITY
        AS w (tenant, workspace, asset_key, partition_key, pinned, place)
    LEFT JOIN scheduler.materializations pinned
        ON pinned.attempt_id = w.pinned AND pinned.asset_key = w.asset_key AND pinned.tenant = w.tenant
        AND pinned.state = 3
    LEFT JOIN scheduler.partitions p
        ON pinned.attempt_id IS NULL AND p.tenant = w.tenant AND p.workspace = w.workspace
        AND p.asset_key = w.asset_key AND p.partition_key = w.partition_key
    LEFT JOIN scheduler.materializations latest
        ON latest.attempt_id = p.materialization_id AND latest.asset_key = w.asset_key
)
SELECT place, attempt_id, output, CASE WHEN output = '' THEN -2 ELSE -1 END
FROM found WHERE attempt_id IS NOT NULL
UNION ALL
SELECT f.place, c.attempt_id, c.output, t.item
FROM found f
CROSS JOIN LATERAL (
    SELECT t.item, t.attempt_id FROM scheduler.tasks t
    WHERE t.run_number = f.run_number AND t.ordinal = f.ordinal AND t.item >= 0 OFFSET 0
) t
LEFT JOIN scheduler.materializations c ON c.attempt_id = t.attempt_id AND c.asset_key = f.asset_key AND c.state = 3
WHERE f.output = ''
ORDER BY 1, 4
