-- Part of a flush: merges partition rows; the later attempt wins, ties by attempt id. The rows are
-- sorted, because two flushes may write the same partitions and must lock them in one order. Run by
-- store::flush::statement.
INSERT INTO scheduler.partitions AS s (tenant, workspace, asset_key, partition_key, attempt_id, attempted_at,
    attempt_run, attempt_state, materialization_id, materialized_at, materialized_run, code_version)
SELECT p.tenant, p.workspace, p.asset, p.partition, p.attempt, p.at, p.number, p.state,
    p.made, p.made_at, p.made_number, p.code
FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
    AS p (tenant, workspace, asset, partition, attempt, at, number, state, made, made_at, made_number, code)
ORDER BY p.tenant COLLATE "C", p.workspace COLLATE "C", p.asset COLLATE "C", p.partition COLLATE "C"
ON CONFLICT (tenant, workspace, asset_key, partition_key) DO UPDATE
SET attempt_id = CASE WHEN (excluded.attempted_at, excluded.attempt_id) >= (s.attempted_at, s.attempt_id)
        THEN excluded.attempt_id ELSE s.attempt_id END,
    attempt_run = CASE WHEN (excluded.attempted_at, excluded.attempt_id) >= (s.attempted_at, s.attempt_id)
        THEN excluded.attempt_run ELSE s.attempt_run END,
    attempt_state = CASE WHEN (excluded.attempted_at, excluded.attempt_id) >= (s.attempted_at, s.attempt_id)
        THEN excluded.attempt_state ELSE s.attempt_state END,
    attempted_at = greatest(excluded.attempted_at, s.attempted_at),
    materialization_id = CASE WHEN s.materialized_at IS NULL
        OR (excluded.materialized_at, excluded.materialization_id) >= (s.materialized_at, s.materialization_id)
        THEN excluded.materialization_id ELSE s.materialization_id END,
    materialized_run = CASE WHEN s.materialized_at IS NULL
        OR (excluded.materialized_at, excluded.materialization_id) >= (s.materialized_at, s.materialization_id)
        THEN excluded.materialized_run ELSE s.materialized_run END,
    code_version = CASE WHEN s.materialized_at IS NULL
        OR (excluded.materialized_at, excluded.materialization_id) >= (s.materialized_at, s.materialization_id)
        THEN excluded.code_version ELSE s.code_version END,
    materialized_at = greatest(excluded.materialized_at, s.materialized_at)
