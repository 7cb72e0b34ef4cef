-- Called for metrics, at a slow pace: what waits and what is being pushed.
SELECT q.queue, count(e.name) FILTER (WHERE e.leased_by IS NULL),
    count(e.name) FILTER (WHERE e.leased_by IS NOT NULL)
FROM dispatcher.queues q LEFT JOIN dispatcher.queue_entries e ON e.queue = q.queue AND e.state = 2
GROUP BY q.queue ORDER BY q.queue
