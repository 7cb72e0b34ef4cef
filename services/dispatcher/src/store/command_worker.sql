-- Stores a drain or kill command. Run by store::workers::command_worker.
UPDATE dispatcher.workers
SET command = $3, version = $4, event_id = $5, cut_off_at = $6,
    state = CASE WHEN state IN (1 /* ACTIVE */, 2 /* DRAINING */) THEN 2 /* DRAINING */ ELSE state END
WHERE tenant = $1 AND worker_id = $2
