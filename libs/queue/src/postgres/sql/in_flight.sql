-- Counts the pushes of a queue that are in flight at any pusher. Run by statements::in_flight.
SELECT count(*) FROM dispatcher.queue_entries
WHERE queue = $1 AND leased_by IS NOT NULL AND due_at > statement_timestamp()
