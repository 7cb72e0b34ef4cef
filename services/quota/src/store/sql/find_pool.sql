-- Called by everything that is about one pool; a deleted one still has its version.
SELECT pool, version, slots, description, deleted FROM quota.pools WHERE tenant = $1 AND pool = $2
