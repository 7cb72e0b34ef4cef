-- Deletes stored answers past the idempotency period, in small batches so that no other statement
-- waits long. Run by store::requests::expire.
DELETE FROM quota.requests WHERE (tenant, request_id) IN (
    SELECT tenant, request_id FROM quota.requests
    WHERE created_at < clock_timestamp() - $1 * interval '1 second' ORDER BY created_at LIMIT $2)
