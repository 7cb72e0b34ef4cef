-- Returns the current manifest of each of the tenant's workspaces. Run by
-- store::manifests::current.
SELECT workspace, manifest FROM planner.current JOIN planner.manifests USING (tenant, workspace, digest)
WHERE tenant = $1
