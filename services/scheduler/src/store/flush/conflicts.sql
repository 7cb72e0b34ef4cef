-- Part of a flush: inserts run key conflicts. Run by store::flush::statement.
INSERT INTO scheduler.run_key_conflicts (tenant, workspace, event_id, run_id, request, fingerprint, recorded_at)
SELECT c.tenant, c.workspace, c.event_id, c.run_id, c.request, c.fingerprint, c.at
FROM unnest($1, $2, $3, $4, $5, $6, $7) AS c (tenant, workspace, event_id, run_id, request, fingerprint, at)
