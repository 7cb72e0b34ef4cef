-- Lists runs in open states, newest first. They are searched among the open runs, so the length of
-- the history does not matter. Run by store::runs::list.
WITH open AS MATERIALIZED (
    SELECT run_number, created_at
    FROM scheduler.runs
    WHERE shard = ANY ($7) AND tenant = $1 AND state < 5 /* open */ AND state = ANY ($5) AND workspace = $2
        AND (created_at, run_number) < ($3, $4)
), examined AS MATERIALIZED (
    SELECT run_number FROM open ORDER BY created_at DESC, run_number DESC LIMIT $6
)
SELECT r.run_id, r.run_number, r.state, r.reason, r.version, r.request, r.plan_id, r.plan_fingerprint, r.deployment_id,
    r.counts, r.error, r.created_at, r.started_at, r.ended_at, r.deadline, r.set_aside,
    EXISTS (
        SELECT FROM scheduler.check_results c WHERE c.run_number = r.run_number AND NOT c.passed AND c.severity = 3 /* ERROR */
    ) AS flagged,
    (SELECT count(*) FROM examined) AS examined
FROM examined l
CROSS JOIN LATERAL (SELECT * FROM scheduler.runs r WHERE r.run_number = l.run_number OFFSET 0) r
ORDER BY r.created_at DESC, r.run_number DESC
