-- Called by Logs for a batch of calls; a repeated one stores nothing new. Who writes lines of a run holds a lock until
-- the commit, so that arrivals are numbered in the order in which readers see them and no reader passes a late one.
WITH new AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bigint[], $7::bytea[])
        AS n (tenant, workspace, run_id, attempt_id, session, sequence, lines)
), locked AS MATERIALIZED (
    SELECT pg_advisory_xact_lock(7410, lane)
    FROM (SELECT DISTINCT get_byte(uuid_send(run_id), 0) AS lane FROM new ORDER BY 1) AS lanes
)
INSERT INTO callback.logs (tenant, workspace, run_id, attempt_id, session, sequence, lines)
SELECT tenant, workspace, run_id, attempt_id, session, sequence, lines FROM new
WHERE (SELECT count(*) FROM locked) > 0
ON CONFLICT DO NOTHING
