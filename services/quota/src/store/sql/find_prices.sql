-- Called by GetPrices and UpdatePrices.
SELECT version, prices FROM quota.prices WHERE tenant = $1
