-- Called by PostgresQueue::delete: dropped before anybody took them; the names stay known.
UPDATE dispatcher.queue_entries
SET state = 5, ended_at = statement_timestamp(), leased_by = NULL, body = ''
WHERE queue = $1 AND name = ANY ($2) AND state = 2
