-- Counts waiting and leased tasks per queue, for metrics. Run by statements::counts.
SELECT q.queue, count(e.name) FILTER (WHERE e.leased_by IS NULL),
    count(e.name) FILTER (WHERE e.leased_by IS NOT NULL)
FROM dispatcher.queues q LEFT JOIN dispatcher.queue_entries e ON e.queue = q.queue AND e.state = 2 /* CREATED */
GROUP BY q.queue ORDER BY q.queue
