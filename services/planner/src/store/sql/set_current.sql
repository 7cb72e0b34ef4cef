-- Called by Deploy, which holds the row's lock.
UPDATE planner.current SET version = $3, deployment_id = $4, digest = $5 WHERE tenant = $1 AND workspace = $2
