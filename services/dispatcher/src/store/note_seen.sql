-- Records the workers that are connected here; a lost one is active or draining again. Run by
-- store::workers::note_seen.
UPDATE dispatcher.workers w
SET seen_at = clock_timestamp(), active_attempts = s.active_attempts,
    state = CASE
        WHEN w.state <> 4 /* LOST */ THEN w.state
        WHEN w.command = 0 THEN 1 /* ACTIVE */
        ELSE 2 /* DRAINING */
    END
FROM unnest($1::text[], $2::uuid[], $3::integer[]) AS s (tenant, worker_id, active_attempts)
WHERE w.tenant = s.tenant AND w.worker_id = s.worker_id
