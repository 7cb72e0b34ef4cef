-- Returns the pools of some tenants or, with NULL, of all. Run by store::pools::load_all.
SELECT tenant, pool, version, slots, description, deleted FROM quota.pools
WHERE NOT deleted AND ($1::text[] IS NULL OR tenant = ANY ($1)) ORDER BY tenant, pool
