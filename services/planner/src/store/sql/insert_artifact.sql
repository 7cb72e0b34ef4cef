-- Records an artifact whose bytes are already stored. Run by store::artifacts::insert.
INSERT INTO planner.artifacts (tenant, workspace, digest, kind, byte_size) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
