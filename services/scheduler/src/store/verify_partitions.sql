-- Lists partition rows for VerifyProjection. Run by store::partitions::list_rows.
SELECT p.asset_key, p.partition_key, p.attempt_id, p.attempted_at, p.attempt_run, p.attempt_state, p.materialization_id,
    p.materialized_at, p.materialized_run, p.code_version
FROM unnest($3::text[], $4::text[]) AS w (asset_key, partition_key)
JOIN scheduler.partitions p ON p.tenant = $1 AND p.workspace = $2 AND p.asset_key = w.asset_key
    AND p.partition_key = w.partition_key
