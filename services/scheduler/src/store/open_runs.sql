-- Called by open_runs: what a new holder of the shard goes on with.
SELECT run_number, tenant, workspace, run_id, state, reason, stopped_by, version, plan_id, request, error,
    error_ordinal, created_at, changed_at, started_at, ended_at, set_aside
FROM scheduler.runs
WHERE shard = $1 AND state < 5
