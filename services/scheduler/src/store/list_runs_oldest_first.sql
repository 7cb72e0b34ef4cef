-- Lists runs, oldest first. The states are filtered within the rows that one page examines, because
-- a search for a rare state could read the whole history. The last two examined rows are returned
-- in any case: they tell where the next page begins. Run by store::runs::list.
WITH examined AS MATERIALIZED (
    SELECT run_number, created_at, state
    FROM scheduler.runs
    WHERE tenant = $1 AND workspace = $2 AND (created_at, run_number) > ($3, $4)
    ORDER BY created_at, run_number
    LIMIT $6
)
SELECT r.run_id, r.run_number, r.state, r.reason, r.version, r.request, r.plan_id, r.plan_fingerprint, r.deployment_id,
    r.counts, r.error, r.created_at, r.started_at, r.ended_at, r.deadline, r.set_aside,
    EXISTS (
        SELECT FROM scheduler.check_results c WHERE c.run_number = r.run_number AND NOT c.passed AND c.severity = 3 /* ERROR */
    ) AS flagged,
    (SELECT count(*) FROM examined) AS examined
FROM examined l
CROSS JOIN LATERAL (SELECT * FROM scheduler.runs r WHERE r.run_number = l.run_number OFFSET 0) r
WHERE $5::smallint[] IS NULL OR l.state = ANY ($5)
    OR l.run_number IN (SELECT run_number FROM examined ORDER BY created_at DESC, run_number DESC LIMIT 2)
ORDER BY r.created_at, r.run_number
