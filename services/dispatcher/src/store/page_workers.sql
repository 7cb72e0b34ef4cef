-- Lists workers after the name and id of the last one listed. Run by store::workers::page_workers.
SELECT worker_id, state, session, info, active_attempts, command, version, event_id, cut_off_at, registered_at, seen_at
FROM dispatcher.workers
WHERE tenant = $1 AND ($2::text IS NULL OR (name COLLATE "C", worker_id) > ($2, $3::uuid))
ORDER BY name COLLATE "C", worker_id LIMIT $4
