-- Called by every mutation, which holds the tenant's lock: keeps its answer.
INSERT INTO quota.requests (tenant, request_id, body, answer) VALUES ($1, $2, $3, $4)
