-- Stores a budget; the caller holds the tenant's lock. The start of counting does not change. Run
-- by store::budgets::upsert.
INSERT INTO quota.budgets (tenant, budget_id, version, name, budget, deleted) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, budget_id) DO UPDATE
SET version = excluded.version, name = excluded.name, budget = excluded.budget, deleted = excluded.deleted
