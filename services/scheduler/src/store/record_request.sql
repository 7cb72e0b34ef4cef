-- Records a request id. Inserts no row when the id exists, and waits for a concurrent transaction
-- with the same id. Run by store::requests::record.
INSERT INTO scheduler.requests (request_id, body) VALUES ($1, $2) ON CONFLICT DO NOTHING
