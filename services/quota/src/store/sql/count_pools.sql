-- Counts the pools of a tenant, which are limited. Run by store::pools::count_existing.
SELECT count(*) FROM quota.pools WHERE tenant = $1 AND NOT deleted
