-- Called by RegisterWorker: a new worker, or the same one again. Answers what it was told last.
INSERT INTO dispatcher.workers AS w (tenant, worker_id, name, state, session, info, push_url)
VALUES ($1, $2, $3, 1, $4, $5, $6)
ON CONFLICT (tenant, worker_id) DO UPDATE
SET name = excluded.name, session = excluded.session, info = excluded.info, seen_at = clock_timestamp(),
    push_url = excluded.push_url,
    -- A new process starts anew; the same one stays told.
    command = CASE WHEN w.session = excluded.session THEN w.command ELSE 0 END,
    state = CASE WHEN w.session = excluded.session AND w.command <> 0 THEN 2 ELSE 1 END
RETURNING command
