-- Stores a price list; the caller holds the tenant's lock. Run by store::prices::upsert.
INSERT INTO quota.prices (tenant, version, prices) VALUES ($1, $2, $3)
ON CONFLICT (tenant) DO UPDATE
SET version = excluded.version, prices = excluded.prices
