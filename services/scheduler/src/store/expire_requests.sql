-- Called by the loop that sweeps the ledger: request ids count for a day. In small steps, so that nobody waits long.
DELETE FROM scheduler.requests WHERE request_id IN (
    SELECT request_id FROM scheduler.requests
    WHERE created_at < clock_timestamp() - $1 * interval '1 second' ORDER BY created_at LIMIT $2)
