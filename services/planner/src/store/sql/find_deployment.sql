-- Finds a deployment by id, or the current one without an id. Run by store::deployments::find.
SELECT d.version, d.digest, d.deployment, d.created_at, c.version AS current_version
FROM planner.current c
JOIN planner.deployments d ON d.tenant = c.tenant AND d.workspace = c.workspace
    AND d.deployment_id = coalesce($3, c.deployment_id)
WHERE c.tenant = $1 AND c.workspace = $2
