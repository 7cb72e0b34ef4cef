-- Reads the state of up to $6 partitions of an asset from a key on, as a few long columns, because
-- transferring rows costs more than reading them. Run by store::statuses::of_asset.
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
