-- Reads one worker. Run by store::workers::find_worker.
SELECT worker_id, state, session, info, active_attempts, command, version, event_id, cut_off_at, registered_at, seen_at
FROM dispatcher.workers WHERE tenant = $1 AND worker_id = $2
