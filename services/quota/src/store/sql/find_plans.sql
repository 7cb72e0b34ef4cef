-- Called by the loop usage.
SELECT plan_id, plan FROM planner.plans
JOIN unnest($1::text[], $2::text[], $3::bytea[]) AS wanted (tenant, workspace, plan_id)
USING (tenant, workspace, plan_id)
