-- Reads a plan. Run by store::runs::read_plan.
SELECT plan FROM planner.plans WHERE tenant = $1 AND workspace = $2 AND plan_id = $3
