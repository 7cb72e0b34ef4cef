-- Finds a pool by name, including a deleted one, which still has its version. Run by
-- store::pools::find.
SELECT pool, version, slots, description, deleted FROM quota.pools WHERE tenant = $1 AND pool = $2
