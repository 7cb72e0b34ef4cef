-- Drops tasks that no target has accepted; their names stay known. Run by statements::delete.
UPDATE dispatcher.queue_entries
SET state = 5 /* CANCELLED */, ended_at = statement_timestamp(), leased_by = NULL, body = ''
WHERE queue = $1 AND name = ANY ($2) AND state = 2 /* CREATED */
