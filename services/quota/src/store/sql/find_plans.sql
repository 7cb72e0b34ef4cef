-- Finds plans by tenant, workspace and id. Run by store::usage::find_plans.
SELECT plan_id, plan FROM planner.plans
JOIN unnest($1::text[], $2::text[], $3::bytea[]) AS requested (tenant, workspace, plan_id)
USING (tenant, workspace, plan_id)
