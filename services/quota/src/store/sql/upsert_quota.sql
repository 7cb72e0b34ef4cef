-- Stores a tenant's limits; the caller holds the tenant's lock. Run by store::quotas::upsert.
INSERT INTO quota.quotas (tenant, version, limits, changed_at) VALUES ($1, $2, $3, clock_timestamp())
ON CONFLICT (tenant) DO UPDATE
SET version = excluded.version, limits = excluded.limits, changed_at = excluded.changed_at
