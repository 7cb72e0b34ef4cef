-- Called by GetRun and whatever names a run.
SELECT run_id, run_number, state, reason, version, request, plan_id, plan_fingerprint, deployment_id,
    counts, error, created_at, started_at, ended_at, deadline
FROM scheduler.runs
WHERE run_id = $1 AND workspace = $2
