-- Called by UpdateQuota, which holds the tenant's lock.
INSERT INTO quota.quotas (tenant, version, limits, changed_at) VALUES ($1, $2, $3, clock_timestamp())
ON CONFLICT (tenant) DO UPDATE
SET version = excluded.version, limits = excluded.limits, changed_at = excluded.changed_at
