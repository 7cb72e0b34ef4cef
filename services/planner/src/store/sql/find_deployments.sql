-- Finds the deployment of each (tenant, workspace, id) by its position; without an id the current
-- one. Run by store::deployments::find_many.
SELECT o.place, d.deployment_id, d.digest
FROM unnest($1::text[], $2::text[], $3::uuid[]) WITH ORDINALITY AS o (tenant, workspace, id, place)
JOIN planner.current c ON c.tenant = o.tenant AND c.workspace = o.workspace
JOIN planner.deployments d ON d.tenant = c.tenant AND d.workspace = c.workspace
    AND d.deployment_id = coalesce(o.id, c.deployment_id)
