-- Called by the command loop.
SELECT tenant, pause_id, workspace, pool, active, version, event_id, principal, comment, started_at
FROM dispatcher.pauses WHERE active
