-- Lists the run key conflicts of a run for VerifyProjection. The ledger keeps idempotency keys for
-- seven days and drops a whole day of them at once, so only rows younger than six days surely have
-- their key. Run by store::conflicts::list_of_run.
SELECT tenant, workspace, event_id, run_id, request, fingerprint, recorded_at,
    recorded_at > clock_timestamp() - interval '6 days' AS has_a_known_key
FROM scheduler.run_key_conflicts
WHERE run_id = $1
