-- Lists the active pauses of all tenants. Run by store::pauses::active_pauses.
SELECT tenant, pause_id, workspace, pool, active, version, event_id, principal, comment, started_at
FROM dispatcher.pauses WHERE active
