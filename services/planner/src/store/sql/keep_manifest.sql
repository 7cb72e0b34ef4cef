-- Called by Deploy: equal content is kept once.
INSERT INTO planner.manifests (tenant, workspace, digest, manifest) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
