-- Called by CreateBudget and UpdatePrices.
SELECT count(*) FROM quota.budgets WHERE tenant = $1 AND NOT deleted
