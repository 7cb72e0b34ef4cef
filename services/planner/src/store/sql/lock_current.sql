-- Locks the workspace's row until the transaction ends, and creates it if it is missing. Run by
-- store::deployments::lock_current.
INSERT INTO planner.current AS c (tenant, workspace) VALUES ($1, $2)
ON CONFLICT (tenant, workspace) DO UPDATE
SET version = c.version
RETURNING version, digest
