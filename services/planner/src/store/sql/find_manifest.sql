-- Called for a deployment that is not in memory.
SELECT manifest FROM planner.manifests WHERE tenant = $1 AND workspace = $2 AND digest = $3
