-- Called by DownloadArtifact and Deploy.
SELECT kind, byte_size FROM planner.artifacts WHERE tenant = $1 AND workspace = $2 AND digest = $3
