-- Returns the kind and size of an artifact. Run by store::artifacts::find.
SELECT kind, byte_size FROM planner.artifacts WHERE tenant = $1 AND workspace = $2 AND digest = $3
