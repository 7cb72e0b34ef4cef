-- Called by CancelRuns.
SELECT w.place, r.version
FROM unnest($1::text[], $2::text[], $3::uuid[]) WITH ORDINALITY AS w (tenant, workspace, run_id, place)
JOIN scheduler.runs r ON r.run_id = w.run_id AND r.tenant = w.tenant AND r.workspace = w.workspace
