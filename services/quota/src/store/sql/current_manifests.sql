-- Called by DeletePool: what is deployed now in the tenant's workspaces.
SELECT workspace, manifest FROM planner.current JOIN planner.manifests USING (tenant, workspace, digest)
WHERE tenant = $1
