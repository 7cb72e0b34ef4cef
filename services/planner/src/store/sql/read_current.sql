-- Reads the current version and digest without a lock. Run by store::deployments::read_current.
SELECT version, digest FROM planner.current WHERE tenant = $1 AND workspace = $2
