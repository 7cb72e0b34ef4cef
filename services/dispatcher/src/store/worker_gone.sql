-- Records that a worker left. Run by store::workers::worker_gone.
UPDATE dispatcher.workers SET state = 3 /* GONE */, active_attempts = 0, seen_at = clock_timestamp()
WHERE tenant = $1 AND worker_id = $2 AND session = $3
