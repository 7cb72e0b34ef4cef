-- Called by ListPools.
SELECT pool, version, slots, description, deleted FROM quota.pools
WHERE tenant = $1 AND pool > $2 AND NOT deleted ORDER BY pool LIMIT $3
