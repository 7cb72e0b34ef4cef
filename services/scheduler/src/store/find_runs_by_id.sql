-- Finds runs by their ids. An empty tenant matches any. Run by store::runs::find_many.
SELECT r.run_number, r.tenant, r.workspace, r.run_id, r.state, r.reason, r.stopped_by, r.version, r.plan_id, r.request,
    r.error, r.error_ordinal, r.created_at, r.changed_at, r.started_at, r.ended_at, r.set_aside
FROM unnest($1::text[], $2::uuid[]) AS w (tenant, run_id)
CROSS JOIN LATERAL (SELECT * FROM scheduler.runs r WHERE r.run_id = w.run_id OFFSET 0) r
WHERE w.tenant IN (r.tenant, '')
