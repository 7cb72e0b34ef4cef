-- Called by Deploy: makes the workspace's row if it is missing, and locks it until the transaction ends.
INSERT INTO planner.current AS c (tenant, workspace) VALUES ($1, $2)
ON CONFLICT (tenant, workspace) DO UPDATE
SET version = c.version
RETURNING version, digest
