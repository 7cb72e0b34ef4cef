-- Called by the pusher: how many pushes of the queue are under way, whoever does them.
SELECT count(*) FROM dispatcher.queue_entries
WHERE queue = $1 AND leased_by IS NOT NULL AND due_at > statement_timestamp()
