-- Called by GetPlan and PlanRun.
SELECT plan FROM planner.plans WHERE tenant = $1 AND workspace = $2 AND plan_id = $3
