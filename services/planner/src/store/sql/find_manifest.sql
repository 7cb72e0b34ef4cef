-- Finds a manifest by digest. Run by store::deployments::find_manifest.
SELECT manifest FROM planner.manifests WHERE tenant = $1 AND workspace = $2 AND digest = $3
