-- Deletes expired request ids in small batches, so that no lock lasts long.
-- Run by store::requests::delete_expired.
DELETE FROM scheduler.requests WHERE request_id IN (
    SELECT request_id FROM scheduler.requests
    WHERE created_at < clock_timestamp() - $1 * interval '1 second' ORDER BY created_at LIMIT $2)
