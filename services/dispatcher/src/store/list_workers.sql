-- Called by ListWorkers, and with one id by DrainWorker, KillWorker and PullTasks.
SELECT worker_id, state, session, info, active_attempts, command, version, event_id, cut_off_at, registered_at, seen_at
FROM dispatcher.workers
WHERE tenant = $1 AND ($2::uuid IS NULL OR worker_id = $2)
ORDER BY name, worker_id
