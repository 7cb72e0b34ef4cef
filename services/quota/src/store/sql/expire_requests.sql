-- Called by the loop expire: request ids count for a day. In small steps, so that nobody waits long.
DELETE FROM quota.requests WHERE (tenant, request_id) IN (
    SELECT tenant, request_id FROM quota.requests
    WHERE created_at < clock_timestamp() - $1 * interval '1 second' ORDER BY created_at LIMIT $2)
