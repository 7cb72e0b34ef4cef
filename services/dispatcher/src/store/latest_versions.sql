-- Reads the versions that a batch of tasks gets as inputs. Run by store::versions::latest_versions.
--
-- For each partition that is the version which the plan takes over from the run it retries, or else
-- the promoted one. A version with an empty output, which no attempt reports, belongs to a mapped
-- parent: it is returned with item -2 and followed by one row per mapped task, in the order of the
-- items, without a version where a mapped task produced nothing. OFFSET 0 keeps the planner from
-- merging the subquery, so that mapped tasks are found by their key.
WITH found AS MATERIALIZED (
    SELECT w.input_number, w.asset_key, coalesce(pinned.attempt_id, p.materialization_id) AS attempt_id,
        coalesce(pinned.output, latest.output) AS output, coalesce(pinned.run_number, latest.run_number) AS run_number,
        coalesce(pinned.ordinal, latest.ordinal) AS ordinal
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[]) WITH ORDINALITY
        AS w (tenant, workspace, asset_key, partition_key, pinned, input_number)
    LEFT JOIN scheduler.materializations pinned
        ON pinned.attempt_id = w.pinned AND pinned.asset_key = w.asset_key AND pinned.tenant = w.tenant
        AND pinned.state = 3 /* PROMOTED */
    LEFT JOIN scheduler.partitions p
        ON pinned.attempt_id IS NULL AND p.tenant = w.tenant AND p.workspace = w.workspace
        AND p.asset_key = w.asset_key AND p.partition_key = w.partition_key
    LEFT JOIN scheduler.materializations latest
        ON latest.attempt_id = p.materialization_id AND latest.asset_key = w.asset_key
)
SELECT input_number, attempt_id, output, CASE WHEN output = '' THEN -2 ELSE -1 END
FROM found WHERE attempt_id IS NOT NULL
UNION ALL
SELECT f.input_number, c.attempt_id, c.output, t.item
FROM found f
CROSS JOIN LATERAL (
    SELECT t.item, t.attempt_id FROM scheduler.tasks t
    WHERE t.run_number = f.run_number AND t.ordinal = f.ordinal AND t.item >= 0 OFFSET 0
) t
LEFT JOIN scheduler.materializations c
    ON c.attempt_id = t.attempt_id AND c.asset_key = f.asset_key AND c.state = 3 /* PROMOTED */
WHERE f.output = ''
ORDER BY 1, 4
