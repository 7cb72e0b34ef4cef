-- Stores plans; an existing row with the same id holds the same plan. Run by store::plans::insert.
INSERT INTO planner.plans (tenant, workspace, plan_id, plan)
SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bytea[])
ON CONFLICT DO NOTHING
