-- Called by the loop limits, for some tenants or, with NULL, for all.
SELECT tenant, pool, version, slots, description, deleted FROM quota.pools
WHERE NOT deleted AND ($1::text[] IS NULL OR tenant = ANY ($1)) ORDER BY tenant, pool
