-- Called by VerifyProjection. Keys of events are known for seven days; of the last hours it is not told, for they go a
-- day's worth at once.
SELECT tenant, workspace, event_id, run_id, request, fingerprint, recorded_at,
    recorded_at > clock_timestamp() - interval '6 days' AS has_a_known_key
FROM scheduler.run_key_conflicts
WHERE run_id = $1
