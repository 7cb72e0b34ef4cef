-- Lists the check results of a run for VerifyProjection. Run by store::checks::list_of_run.
SELECT attempt_id, place, tenant, workspace, asset_key, partition_key, name, passed, severity, ordinal, item, recorded_at,
    result
FROM scheduler.check_results
WHERE run_number = $1
