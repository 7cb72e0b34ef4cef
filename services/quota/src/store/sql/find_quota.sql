-- Called by GetQuota and UpdateQuota.
SELECT version, limits FROM quota.quotas WHERE tenant = $1
