-- Records heartbeats and returns, in the order of the input, the state of their tasks. Run by
-- store::heartbeats::record_heartbeats.
WITH beats AS (
    SELECT * FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::integer[], $5::integer[],
            $6::integer[], $7::text[])
        WITH ORDINALITY AS b (tenant, run_id, attempt_id, ordinal, item, progress_ppm, progress_message, input_number)
), noted AS (
    INSERT INTO callback.heartbeats AS h (attempt_id, tenant, beat_at, progress_ppm, progress_message)
    SELECT DISTINCT ON (attempt_id) attempt_id, tenant, clock_timestamp(), progress_ppm, progress_message
    FROM beats ORDER BY attempt_id, input_number DESC
    ON CONFLICT (attempt_id) DO UPDATE SET beat_at = excluded.beat_at,
        progress_ppm = coalesce(excluded.progress_ppm, h.progress_ppm),
        progress_message = coalesce(excluded.progress_message, h.progress_message)
)
SELECT b.attempt_id, t.attempt_id, t.state, t.cancelling
FROM beats b
-- OFFSET 0 keeps each lookup by its key, even when a young table has no statistics.
LEFT JOIN LATERAL (SELECT run_number, tenant FROM scheduler.runs WHERE run_id = b.run_id OFFSET 0) r ON r.tenant = b.tenant
LEFT JOIN LATERAL (
    SELECT attempt_id, state, cancelling FROM scheduler.tasks
    WHERE run_number = r.run_number AND ordinal = b.ordinal AND item = b.item OFFSET 0
) t ON true
ORDER BY b.input_number
