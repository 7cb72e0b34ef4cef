-- Called by the registry loop: workers that left or were lost long ago, in portions so that no statement lasts.
DELETE FROM dispatcher.workers
WHERE (tenant, worker_id) IN (
    SELECT tenant, worker_id FROM dispatcher.workers
    WHERE state IN (3, 4) AND seen_at < clock_timestamp() - $1::interval
    LIMIT 1000
)
