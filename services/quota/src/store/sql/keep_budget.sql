-- Called by every change of a budget, which holds the tenant's lock. What is spent stays spent.
INSERT INTO quota.budgets (tenant, budget_id, version, name, budget, deleted) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, budget_id) DO UPDATE
SET version = excluded.version, name = excluded.name, budget = excluded.budget, deleted = excluded.deleted
