-- Called by PullTasks when a worker said good-bye.
UPDATE dispatcher.workers SET state = 3, active_attempts = 0, seen_at = clock_timestamp()
WHERE tenant = $1 AND worker_id = $2 AND session = $3
