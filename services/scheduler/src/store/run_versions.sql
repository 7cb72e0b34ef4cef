-- Returns the versions of several runs, each with its index in the request. Run by
-- store::runs::list_versions.
SELECT w.number, r.version
FROM unnest($1::text[], $2::text[], $3::uuid[]) WITH ORDINALITY AS w (tenant, workspace, run_id, number)
CROSS JOIN LATERAL (SELECT * FROM scheduler.runs r WHERE r.run_id = w.run_id OFFSET 0) r
WHERE r.tenant = w.tenant AND r.workspace = w.workspace
