-- Called by known_runs: runs by their id, and by the call that asked for them.
SELECT w.place, false, r.run_id, r.run_number, r.state, r.request, r.request_event_id, r.plan_id, r.deployment_id
FROM unnest($1::text[], $3::text[], $2::uuid[]) WITH ORDINALITY AS w (tenant, workspace, run_id, place)
JOIN scheduler.runs r ON r.run_id = w.run_id AND r.tenant = w.tenant AND r.workspace = w.workspace
UNION ALL
SELECT w.place, true, r.run_id, r.run_number, r.state, r.request, r.request_event_id, r.plan_id, r.deployment_id
FROM unnest($1::text[], $3::text[], $4::text[]) WITH ORDINALITY AS w (tenant, workspace, request_id, place)
JOIN scheduler.runs r ON r.tenant = w.tenant AND r.workspace = w.workspace AND r.request_id = w.request_id
