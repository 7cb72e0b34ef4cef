-- Lists the active pauses of one tenant. Run by store::pauses::active_pauses_of.
SELECT tenant, pause_id, workspace, pool, active, version, event_id, principal, comment, started_at
FROM dispatcher.pauses WHERE active AND tenant = $1
ORDER BY started_at, pause_id
