-- Called by UpdatePrices, which holds the tenant's lock.
INSERT INTO quota.prices (tenant, version, prices) VALUES ($1, $2, $3)
ON CONFLICT (tenant) DO UPDATE
SET version = excluded.version, prices = excluded.prices
