-- Stores batches of log lines; a repeated one is skipped. Run by store::logs::append_logs.
--
-- The advisory lock is held until the commit, so that batches of a run are numbered in the order in
-- which readers see them, and no reader moves past a batch that commits late.
WITH new AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bigint[], $7::bytea[])
        AS n (tenant, workspace, run_id, attempt_id, session, sequence, lines)
), locked AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(7410, lock_key)
    FROM (SELECT DISTINCT get_byte(uuid_send(run_id), 0) AS lock_key FROM new ORDER BY 1) AS lock_keys
)
INSERT INTO callback.logs (tenant, workspace, run_id, attempt_id, session, sequence, lines)
SELECT tenant, workspace, run_id, attempt_id, session, sequence, lines FROM new
WHERE (SELECT count(*) FROM locked) > 0
ON CONFLICT DO NOTHING
