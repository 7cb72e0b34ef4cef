-- Lists the budgets of a tenant behind a name and id. Run by store::budgets::list.
SELECT budget_id, version, name, budget, counts_from FROM quota.budgets
WHERE tenant = $1 AND NOT deleted AND ($2::text IS NULL OR (name, budget_id) > ($2, $3))
ORDER BY name, budget_id LIMIT $4
