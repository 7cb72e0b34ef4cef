-- Inserts or updates a pause. Run by store::pauses::put_pause.
INSERT INTO dispatcher.pauses (tenant, pause_id, workspace, pool, active, version, event_id, principal, comment, started_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp())
ON CONFLICT (tenant, pause_id) DO UPDATE
SET active = excluded.active, version = excluded.version, event_id = excluded.event_id,
    principal = excluded.principal, comment = excluded.comment, started_at = excluded.started_at
RETURNING tenant, pause_id, workspace, pool, active, version, event_id, principal, comment, started_at
