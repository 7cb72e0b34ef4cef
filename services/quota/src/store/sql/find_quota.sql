-- Finds the limits that a tenant has set. Run by store::quotas::find.
SELECT version, limits FROM quota.quotas WHERE tenant = $1
