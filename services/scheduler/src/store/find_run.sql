-- Finds a run by its id. Run by store::runs::find.
SELECT run_id, run_number, state, reason, version, request, plan_id, plan_fingerprint, deployment_id,
    counts, error, created_at, started_at, ended_at, deadline, set_aside,
    EXISTS (
        SELECT FROM scheduler.check_results c WHERE c.run_number = r.run_number AND NOT c.passed AND c.severity = 3 /* ERROR */
    ) AS flagged
FROM scheduler.runs r
WHERE run_id = $1 AND workspace = $2
