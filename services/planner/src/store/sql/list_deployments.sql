-- Lists deployments below a version, newest first. Run by store::deployments::list.
SELECT d.version, d.digest, d.deployment, d.created_at, c.version AS current_version
FROM planner.current c
JOIN planner.deployments d ON d.tenant = c.tenant AND d.workspace = c.workspace
WHERE c.tenant = $1 AND c.workspace = $2 AND d.version < $3
ORDER BY d.version DESC LIMIT $4
