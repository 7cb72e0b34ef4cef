-- Stores the answer to a mutation. Inserts no row when the request_id was answered concurrently.
-- Run by store::requests::insert.
INSERT INTO planner.requests (tenant, workspace, request_id, body, answer) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
