-- Finds a run by its number. Run by store::runs::find_by_number.
SELECT run_number, tenant, workspace, run_id, state, reason, stopped_by, version, plan_id, request, error,
    error_ordinal, created_at, changed_at, started_at, ended_at, set_aside
FROM scheduler.runs
WHERE run_number = $1
