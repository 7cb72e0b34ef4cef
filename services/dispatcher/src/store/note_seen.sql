-- Called by the registry loop for all workers connected here.
UPDATE dispatcher.workers w
SET seen_at = clock_timestamp(), active_attempts = s.active_attempts,
    state = CASE WHEN w.state = 4 THEN CASE WHEN w.command = 0 THEN 1 ELSE 2 END ELSE w.state END
FROM unnest($1::text[], $2::uuid[], $3::integer[]) AS s (tenant, worker_id, active_attempts)
WHERE w.tenant = s.tenant AND w.worker_id = s.worker_id
