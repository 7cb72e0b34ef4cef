-- Lists the open runs of a shard for its new holder. Run by store::runs::list_open.
SELECT run_number, tenant, workspace, run_id, state, reason, stopped_by, version, plan_id, request, error,
    error_ordinal, created_at, changed_at, started_at, ended_at, set_aside
FROM scheduler.runs
WHERE shard = $1 AND state < 5 /* open */
