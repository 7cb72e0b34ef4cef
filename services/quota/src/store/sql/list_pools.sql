-- Lists the pools of a tenant behind a name. Run by store::pools::list.
SELECT pool, version, slots, description, deleted FROM quota.pools
WHERE tenant = $1 AND pool > $2 AND NOT deleted ORDER BY pool LIMIT $3
