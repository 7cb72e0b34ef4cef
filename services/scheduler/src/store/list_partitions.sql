-- Lists the stored facts about these partitions. Run by store::partitions::list.
SELECT p.asset_key, p.partition_key, p.attempt_id, p.attempted_at, p.attempt_state, p.materialization_id,
    p.materialized_at, p.code_version, attempted.run_id AS attempt_run_id,
    materialized.run_id AS materialized_run_id, newest.state AS newest_state
FROM unnest($3::text[], $4::text[]) AS w (asset_key, partition_key)
JOIN scheduler.partitions p ON p.tenant = $1 AND p.workspace = $2 AND p.asset_key = w.asset_key
    AND p.partition_key = w.partition_key
LEFT JOIN scheduler.runs attempted ON attempted.run_number = p.attempt_run
LEFT JOIN scheduler.runs materialized ON materialized.run_number = p.materialized_run
LEFT JOIN scheduler.materializations newest ON newest.attempt_id = p.attempt_id AND newest.asset_key = p.asset_key
