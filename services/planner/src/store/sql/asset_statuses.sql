-- Called by SummarizePartitions and FindStalePartitions, a stretch of keys at a time: what the scheduler knows of an
-- asset's partitions, as a few long columns, since rows cost more to carry than to read.
SELECT array_agg(k.partition_key), array_agg(k.materialized_at), array_agg(coalesce(k.code_version, '') = $4),
    array_agg(k.attempt_state),
    array_agg(k.attempt_state = $7 AND k.materialization_id IS DISTINCT FROM k.attempt_id AND EXISTS (
        SELECT FROM scheduler.materializations m
        WHERE m.attempt_id = k.attempt_id AND m.asset_key = $3 AND m.state = $8
    ))
FROM (
    SELECT p.partition_key, p.materialization_id, p.materialized_at, p.code_version, p.attempt_id, p.attempt_state
    FROM scheduler.partitions p
    WHERE p.tenant = $1 AND p.workspace = $2 AND p.asset_key = $3 AND p.partition_key >= $5
    ORDER BY p.partition_key
    LIMIT $6
) k
