-- Called by the pusher at a slow pace: names are forgotten in portions, so that no statement lasts.
DELETE FROM dispatcher.queue_entries
WHERE (queue, name) IN (
    SELECT queue, name FROM dispatcher.queue_entries
    WHERE state > 2 AND ended_at < statement_timestamp() - $1::interval
    ORDER BY ended_at LIMIT $2
)
