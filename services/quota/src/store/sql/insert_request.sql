-- Stores the answer to a mutation; the caller holds the tenant's lock. Run by
-- store::requests::insert.
INSERT INTO quota.requests (tenant, request_id, body, answer) VALUES ($1, $2, $3, $4)
