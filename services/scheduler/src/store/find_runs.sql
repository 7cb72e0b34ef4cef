-- Finds runs by run id and by the request id of the call that created them. OFFSET 0 keeps each
-- lookup on the index of its unique column, whatever the statistics say about a young table. Run by
-- store::run_lookup::find.
SELECT w.number, false AS by_request, r.run_id, r.run_number, r.state, r.request, r.request_event_id, r.plan_id, r.deployment_id
FROM unnest($1::text[], $3::text[], $2::uuid[]) WITH ORDINALITY AS w (tenant, workspace, run_id, number)
CROSS JOIN LATERAL (SELECT * FROM scheduler.runs r WHERE r.run_id = w.run_id OFFSET 0) r
WHERE r.tenant = w.tenant AND r.workspace = w.workspace
UNION ALL
SELECT w.number, true, r.run_id, r.run_number, r.state, r.request, r.request_event_id, r.plan_id, r.deployment_id
FROM unnest($1::text[], $3::text[], $4::text[]) WITH ORDINALITY AS w (tenant, workspace, request_id, number)
CROSS JOIN LATERAL (SELECT * FROM scheduler.runs r WHERE r.request_id = w.request_id OFFSET 0) r
WHERE r.tenant = w.tenant AND r.workspace = w.workspace
