-- Deletes workers that left or were lost long ago, in batches that keep the statement short. Run by
-- store::workers::forget_workers.
DELETE FROM dispatcher.workers
WHERE (tenant, worker_id) IN (
    SELECT tenant, worker_id FROM dispatcher.workers
    WHERE state IN (3 /* GONE */, 4 /* LOST */) AND seen_at < clock_timestamp() - $1::interval
    LIMIT 1000
)
