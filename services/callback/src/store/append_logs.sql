-- Called by Logs for a batch of calls; a repeated one stores nothing new.
INSERT INTO callback.logs (tenant, workspace, run_id, attempt_id, session, sequence, lines)
SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::bigint[], $6::bigint[], $7::bytea[])
ON CONFLICT DO NOTHING
