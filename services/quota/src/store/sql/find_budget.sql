-- Finds a budget by id. Run by store::budgets::find.
SELECT budget_id, version, name, budget, counts_from FROM quota.budgets
WHERE tenant = $1 AND budget_id = $2 AND NOT deleted
