-- Deletes expired names in batches, so that no statement takes long. Run by statements::expire.
DELETE FROM dispatcher.queue_entries
WHERE (queue, name) IN (
    SELECT queue, name FROM dispatcher.queue_entries
    WHERE state > 2 /* ended */ AND ended_at < statement_timestamp() - $1::interval
    ORDER BY ended_at LIMIT $2
)
