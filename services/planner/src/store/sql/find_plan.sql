-- Finds a plan by id. Run by store::plans::find.
SELECT plan FROM planner.plans WHERE tenant = $1 AND workspace = $2 AND plan_id = $3
