-- Called by the pusher: microseconds until the next task is due, or until its lease ends.
SELECT (extract(epoch FROM due_at - statement_timestamp()) * 1e6)::bigint
FROM dispatcher.queue_entries WHERE queue = $1 AND state = 2 ORDER BY due_at LIMIT 1
