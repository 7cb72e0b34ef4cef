-- Returns the plan of each run. Run by store::usage::plans_of_runs.
SELECT run_id, tenant, workspace, plan_id FROM scheduler.runs WHERE run_id = ANY ($1) AND plan_id IS NOT NULL
