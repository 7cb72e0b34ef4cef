-- Called by every change of a pool, which holds the tenant's lock.
INSERT INTO quota.pools (tenant, pool, version, slots, description, deleted) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, pool) DO UPDATE
SET version = excluded.version, slots = excluded.slots, description = excluded.description, deleted = excluded.deleted
