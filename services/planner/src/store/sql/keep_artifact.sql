-- Called by UploadArtifact, when the bytes lie in their place.
INSERT INTO planner.artifacts (tenant, workspace, digest, kind, byte_size) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
