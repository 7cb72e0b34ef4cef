-- Locks a set until the transaction ends, and creates it if it is missing. Run by
-- store::sets::lock.
INSERT INTO planner.partition_sets AS s (tenant, workspace, set_name) VALUES ($1, $2, $3)
ON CONFLICT (tenant, workspace, set_name) DO UPDATE
SET version = s.version
RETURNING version, last_ordinal, value_count
