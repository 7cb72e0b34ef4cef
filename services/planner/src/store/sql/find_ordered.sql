-- Called by MakePlans: the deployment of each order, by the order's place; one without an id means the current one.
SELECT o.place, d.deployment_id, d.digest
FROM unnest($1::text[], $2::text[], $3::uuid[]) WITH ORDINALITY AS o (tenant, workspace, id, place)
JOIN planner.current c ON c.tenant = o.tenant AND c.workspace = o.workspace
JOIN planner.deployments d ON d.tenant = c.tenant AND d.workspace = c.workspace
    AND d.deployment_id = coalesce(o.id, c.deployment_id)
