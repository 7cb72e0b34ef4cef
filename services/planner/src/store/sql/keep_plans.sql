-- Called by MakePlans: a plan that is there already is the same plan.
INSERT INTO planner.plans (tenant, workspace, plan_id, plan)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[])
ON CONFLICT DO NOTHING
