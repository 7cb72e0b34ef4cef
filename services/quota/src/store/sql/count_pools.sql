-- Called by CreatePool: a tenant has so many and no more.
SELECT count(*) FROM quota.pools WHERE tenant = $1 AND NOT deleted
