-- Deletes stored answers past the idempotency period, in small batches so that no other statement
-- waits long. Run by store::requests::expire.
DELETE FROM planner.requests WHERE (tenant, workspace, request_id) IN (
    SELECT tenant, workspace, request_id FROM planner.requests
    WHERE created_at < clock_timestamp() - $1 * interval '1 second' ORDER BY created_at LIMIT $2)
