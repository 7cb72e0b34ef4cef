-- Reads the state of these partitions by position. An approved version counts from its approval for
-- its readers. Run by store::statuses::of_partitions and store::statuses::of_plans.
SELECT w.place, p.materialized_at, coalesce(m.promoted_at, p.materialized_at), p.code_version, p.attempt_state
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
    AS w (tenant, workspace, asset_key, partition_key, place)
JOIN scheduler.partitions p ON p.tenant = w.tenant AND p.workspace = w.workspace AND p.asset_key = w.asset_key
    AND p.partition_key = w.partition_key
LEFT JOIN scheduler.materializations m ON m.attempt_id = p.materialization_id AND m.asset_key = p.asset_key
