-- Counts the budgets of a tenant. Run by store::budgets::count_existing.
SELECT count(*) FROM quota.budgets WHERE tenant = $1 AND NOT deleted
