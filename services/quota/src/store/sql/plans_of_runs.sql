-- Called by the loop usage: which plan a run follows.
SELECT run_id, tenant, workspace, plan_id FROM scheduler.runs WHERE run_id = ANY ($1) AND plan_id IS NOT NULL
