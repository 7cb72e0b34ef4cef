-- Called by ListRuns, newest first: one more than the page, which tells whether there is a next.
SELECT run_id, run_number, state, reason, version, request, plan_id, plan_fingerprint, deployment_id, counts, error,
    created_at, started_at, ended_at, deadline, set_aside,
    EXISTS (
        SELECT FROM scheduler.check_results c WHERE c.run_number = r.run_number AND NOT c.passed AND c.severity = 3
    ) AS flagged
FROM scheduler.runs r
WHERE tenant = $1 AND workspace = $2 AND (created_at, run_number) < ($3, $4)
    AND ($5::smallint[] IS NULL OR state = ANY ($5))
ORDER BY created_at DESC, run_number DESC
LIMIT $6
