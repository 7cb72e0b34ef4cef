-- Called by every mutation: keeps its answer. No row means that the same request_id was answered meanwhile.
INSERT INTO planner.requests (tenant, workspace, request_id, body, answer) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
