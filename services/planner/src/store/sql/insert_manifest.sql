-- Stores a manifest; equal content is stored once. Run by store::deployments::insert_manifest.
INSERT INTO planner.manifests (tenant, workspace, digest, manifest) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING
