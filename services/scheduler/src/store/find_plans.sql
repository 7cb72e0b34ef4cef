-- Finds stored plans. Run by store::plans::find.
SELECT p.plan
FROM unnest($1::text[], $2::text[], $3::bytea[]) AS w (tenant, workspace, plan_id)
JOIN planner.plans p ON p.tenant = w.tenant AND p.workspace = w.workspace AND p.plan_id = w.plan_id
