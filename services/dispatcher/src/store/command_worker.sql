-- Called by DrainWorker and KillWorker.
UPDATE dispatcher.workers
SET command = $3, version = $4, event_id = $5, cut_off_at = $6, state = CASE WHEN state IN (1, 2) THEN 2 ELSE state END
WHERE tenant = $1 AND worker_id = $2
