-- Makes a deployment the current one; the caller holds the row's lock. Run by
-- store::deployments::set_current.
UPDATE planner.current SET version = $3, deployment_id = $4, digest = $5 WHERE tenant = $1 AND workspace = $2
