-- Reads and locks a pause. Run by store::pauses::lock_pause.
SELECT tenant, pause_id, workspace, pool, active, version, event_id, principal, comment, started_at
FROM dispatcher.pauses WHERE tenant = $1 AND pause_id = $2 FOR UPDATE
