-- Called when a plan is needed that is not in memory.
SELECT plan FROM planner.plans WHERE tenant = $1 AND workspace = $2 AND plan_id = $3
