-- Called by TailLogs: attempts are named after the tasks of the plan.
SELECT plan FROM planner.plans WHERE tenant = $1 AND workspace = $2 AND plan_id = $3
