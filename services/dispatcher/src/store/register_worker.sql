-- Registers or renews a worker and returns its last command. Run by
-- store::workers::register_worker.
INSERT INTO dispatcher.workers AS w (tenant, worker_id, name, state, session, info, push_url)
VALUES ($1, $2, $3, 1 /* ACTIVE */, $4, $5, $6)
ON CONFLICT (tenant, worker_id) DO UPDATE
SET name = excluded.name, session = excluded.session, info = excluded.info, seen_at = clock_timestamp(),
    push_url = excluded.push_url,
    -- A new session has no command; the same session keeps its command.
    command = CASE WHEN w.session = excluded.session THEN w.command ELSE 0 END,
    state = CASE WHEN w.session = excluded.session AND w.command <> 0 THEN 2 /* DRAINING */ ELSE 1 /* ACTIVE */ END
RETURNING command
