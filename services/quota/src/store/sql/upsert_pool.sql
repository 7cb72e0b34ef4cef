-- Stores a pool; the caller holds the tenant's lock. Run by store::pools::upsert.
INSERT INTO quota.pools (tenant, pool, version, slots, description, deleted) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, pool) DO UPDATE
SET version = excluded.version, slots = excluded.slots, description = excluded.description, deleted = excluded.deleted
