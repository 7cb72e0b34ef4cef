-- Microseconds until the next task is due or its lease ends. Run by statements::next_due.
SELECT (extract(epoch FROM due_at - statement_timestamp()) * 1e6)::bigint
FROM dispatcher.queue_entries WHERE queue = $1 AND state = 2 /* CREATED */ ORDER BY due_at LIMIT 1
