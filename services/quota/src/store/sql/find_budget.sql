-- Called by everything that is about one budget.
SELECT budget_id, version, name, budget, counts_from FROM quota.budgets
WHERE tenant = $1 AND budget_id = $2 AND NOT deleted
