-- Called by known_runs: runs by their id, and by the call that asked for them. OFFSET 0 keeps each lookup
-- one by the column that tells runs apart, whatever the statistics say of a young table.
SELECT w.place, false, r.run_id, r.run_number, r.state, r.request, r.request_event_id, r.plan_id, r.deployment_id
FROM unnest($1::text[], $3::text[], $2::uuid[]) WITH ORDINALITY AS w (tenant, workspace, run_id, place)
CROSS JOIN LATERAL (SELECT * FROM scheduler.runs r WHERE r.run_id = w.run_id OFFSET 0) r
WHERE r.tenant = w.tenant AND r.workspace = w.workspace
UNION ALL
SELECT w.place, true, r.run_id, r.run_number, r.state, r.request, r.request_event_id, r.plan_id, r.deployment_id
FROM unnest($1::text[], $3::text[], $4::text[]) WITH ORDINALITY AS w (tenant, workspace, request_id, place)
CROSS JOIN LATERAL (SELECT * FROM scheduler.runs r WHERE r.request_id = w.request_id OFFSET 0) r
WHERE r.tenant = w.tenant AND r.workspace = w.workspace
