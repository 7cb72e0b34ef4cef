-- Returns the budgets of some tenants or, with NULL, of all. Run by store::budgets::load_all.
SELECT tenant, budget_id, version, name, budget, counts_from FROM quota.budgets
WHERE NOT deleted AND ($1::text[] IS NULL OR tenant = ANY ($1)) ORDER BY tenant, name, budget_id
