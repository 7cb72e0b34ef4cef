-- Lists the materializations of these attempts for VerifyProjection. Run by
-- store::materializations::list_of_attempts.
SELECT attempt_id, asset_key, partition_key, tenant, workspace, run_number, ordinal, item, state, version, recorded_at,
    promoted_at, output, resolved_by, resolved_event
FROM scheduler.materializations
WHERE attempt_id = ANY ($1)
